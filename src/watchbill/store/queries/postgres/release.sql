-- Give shards back, those that are still held under their terms: cleanly, or with losses for whoever comes next to count.
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
SET
    owner = NULL,
    until = 0,
    unclean = shard = ANY (:uncounted::integer[]),
    doing = CASE WHEN shard = ANY (:uncounted::integer[]) THEN doing END
WHERE role = 'scheduler'
    AND shard = ANY (ARRAY(SELECT shard FROM held))
