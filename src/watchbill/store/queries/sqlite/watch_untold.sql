-- Find agents that are lost, and of whom nobody was told; if asked for, also those whose lease has ended.
SELECT id
FROM agent
WHERE state = 2
    AND missed_at = 0
UNION ALL
SELECT id
FROM agent
WHERE state = 1
    AND :expired
    AND until <= :now
    AND missed_at < beat_at
ORDER BY id
LIMIT :limit
