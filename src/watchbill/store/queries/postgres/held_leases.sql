-- Find which of these shards the owner holds, each under its own term, and what time it is.
SELECT
    watchbill.at(:now::bigint),
    ARRAY(
        SELECT shard
        FROM watchbill.lease
        WHERE role = 'scheduler'
            AND shard = ANY (:shards::integer[])
            AND owner = :owner
            AND term = (:terms::bigint[])[array_position(:shards::integer[], shard)]
    )
