-- Read the numbers of runs that a takeover must load, in order, a page at a time.
SELECT run.num
FROM json_each(:shards) AS mine
CROSS JOIN run
WHERE run.num IN (
    SELECT num
    FROM run AS live
    WHERE live.shard = mine.value
        AND live.status < 10
        AND live.status <> 2
        AND (live.status <> 0 OR (:due AND live.wake_at <= :now))
        AND live.num > :after
        AND (:known IS NULL OR live.workflow || '@' || live.version IN (SELECT value FROM json_each(:known)))
    ORDER BY live.num
    LIMIT :limit
)
ORDER BY run.num
LIMIT :limit
