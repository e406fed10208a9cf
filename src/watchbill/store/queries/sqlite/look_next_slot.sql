-- Say when the next slot will be due.
SELECT min(at)
FROM (
    SELECT (
        SELECT later.wake_at
        FROM schedule AS later
        WHERE later.shard = mine.value
            AND later.wake_at > :now
            AND later.paused_by IS NULL
            AND coalesce(later.workflow, later.name) IN (SELECT value FROM json_each(:known))
        ORDER BY later.wake_at
        LIMIT 1
    ) AS at
    FROM json_each(:shards) AS mine
)
