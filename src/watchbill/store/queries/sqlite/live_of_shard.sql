-- Find one live run of a shard.
SELECT num, id, status
FROM (
    SELECT num, id, status
    FROM run
    WHERE shard = :shard
        AND status < 10
        AND status <> 2
    UNION ALL
    SELECT num, id, status
    FROM run
    WHERE shard = :shard
        AND status IN (0, 2)
)
LIMIT 1
