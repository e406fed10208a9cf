-- Count the open runs of a namespace in all regions, up to a number.
SELECT count(*)
FROM (
    SELECT 1
    FROM watchbill.shard
    CROSS JOIN LATERAL (
        SELECT 1
        FROM watchbill.run_state AS due
        WHERE due.shard = shard.id
            AND due.status IN (0, 2)
        UNION ALL
        SELECT 1
        FROM watchbill.run_state AS live
        WHERE live.shard = shard.id
            AND live.status IN (1, 3, 4)
    ) AS open
    WHERE shard.namespace = :namespace
    LIMIT :most::bigint
) AS counted
