-- Count the open runs of a namespace in all regions, up to a number.
SELECT count(*)
FROM (
    SELECT 1
    FROM shard
    CROSS JOIN run ON run.shard = shard.id
    WHERE shard.namespace = :namespace
        AND run.status IN (0, 2)
    UNION ALL
    SELECT 1
    FROM shard
    CROSS JOIN run ON run.shard = shard.id
    WHERE shard.namespace = :namespace
        AND run.status < 10
        AND run.status <> 2
        AND run.status <> 0
    LIMIT :most
)
