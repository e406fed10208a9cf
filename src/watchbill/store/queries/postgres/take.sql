-- Take the shards that are released, buried, expired or this owner's, under one new term above `above`; never waits for a turn.
-- A lease of this owner under a term that it has given up is unclean: a store may have lost that it was released.
WITH free AS MATERIALIZED (
    SELECT
        shard, doing, owner,
        CASE
            WHEN owner IS NULL THEN unclean
            WHEN owner = :owner
                THEN unclean OR term <= (:given_up::bigint[])[array_position(:shards::integer[], shard)]
            ELSE true
        END AS unclean
    FROM watchbill.lease
    WHERE role = 'scheduler'
        AND shard = ANY (:shards::integer[])
        AND (
            owner IS NULL
            OR owner = :owner
            OR until = 0
            OR (:expired::boolean AND until <= (SELECT watchbill.at(:now::bigint)))
        )
    ORDER BY shard
    FOR UPDATE SKIP LOCKED
),
drawn AS MATERIALIZED (
    SELECT watchbill.term_above(:above::bigint) AS term
    WHERE EXISTS (SELECT 1 FROM free)
),
taken AS (
    UPDATE watchbill.lease
    SET
        owner = :owner, term = drawn.term, unclean = free.unclean, doing = NULL,
        until = coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904)
    FROM free
    CROSS JOIN drawn
    WHERE role = 'scheduler'
        AND lease.shard = ANY (ARRAY(SELECT shard FROM free))
        AND lease.shard = free.shard
    RETURNING lease.shard, lease.term, lease.unclean, free.doing, free.owner
)
SELECT
    time.now, EXISTS (SELECT 1 FROM watchbill.upload WHERE upload.shard = ANY (:shards::integer[])),
    taken.shard, taken.term, taken.unclean, taken.doing, taken.owner
FROM (SELECT watchbill.at(:now::bigint) AS now) AS time
LEFT JOIN taken ON true
ORDER BY taken.shard
