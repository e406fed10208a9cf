-- Say when the next run will be due.
SELECT min(at)
FROM (
    SELECT (
        SELECT later.wake_at
        FROM run AS later
        WHERE later.shard = mine.value
            AND later.status IN (0, 2)
            AND later.wake_at > :now
            AND (later.paused = 0 OR later.status = 2)
            AND later.held IS NULL
            AND later.workflow || '@' || later.version IN (SELECT value FROM json_each(:known))
        ORDER BY later.wake_at
        LIMIT 1
    ) AS at
    FROM json_each(:shards) AS mine
)
