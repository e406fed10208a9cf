-- Read some runs of a shard that are due and not begun or woken, with the code they need, the longest overdue first.
SELECT shard, workflow, version, id
FROM (
    SELECT shard, workflow, version, id, paused, held
    FROM run
    WHERE shard = :shard
        AND status IN (0, 2)
        AND wake_at <= :now
    ORDER BY wake_at
    LIMIT :limit
)
WHERE NOT paused
    AND held IS NULL
