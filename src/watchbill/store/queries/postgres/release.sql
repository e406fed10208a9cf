-- Give shards back, cleanly, those that are still held under their terms.
WITH held AS MATERIALIZED (
    SELECT shard
    FROM watchbill.lease
    WHERE role = 'scheduler'
        AND shard = ANY (:shards::integer[])
        AND owner = :owner
        AND term = (:terms::bigint[])[array_position(:shards::integer[], shard)]
    ORDER BY shard
    FOR UPDATE
)
UPDATE watchbill.lease
SET owner = NULL, until = 0, unclean = false, doing = NULL
WHERE role = 'scheduler'
    AND shard = ANY (ARRAY(SELECT shard FROM held))
