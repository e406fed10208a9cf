-- Say when the next run will be due; of any code, paused or not: one look too many, instead of reading who is none of it.
SELECT min(at)
FROM (
    SELECT (
        SELECT later.wake_at
        FROM run AS later
        WHERE later.shard = mine.value
            AND later.status IN (0, 2)
            AND later.wake_at > :now
        ORDER BY later.wake_at
        LIMIT 1
    ) AS at
    FROM json_each(:shards) AS mine
)
