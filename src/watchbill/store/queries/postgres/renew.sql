-- Prolong those leases that are still held under their terms, and say which; a buried one stays so.
WITH held AS MATERIALIZED (
    SELECT shard
    FROM watchbill.lease
    WHERE role = 'scheduler'
        AND shard = ANY (:shards::integer[])
        AND owner = :owner
        AND term = (:terms::bigint[])[array_position(:shards::integer[], shard)]
        AND until <> 0
    ORDER BY shard
    FOR UPDATE
),
renewed AS (
    UPDATE watchbill.lease
    SET until = coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904)
    WHERE role = 'scheduler'
        AND shard = ANY (ARRAY(SELECT shard FROM held))
    RETURNING shard
)
SELECT watchbill.at(:now::bigint), ARRAY(SELECT shard FROM renewed)
