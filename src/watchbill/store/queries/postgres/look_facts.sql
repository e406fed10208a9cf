-- Read facts by their numbers, in order.
SELECT
    id, shard, run, kind, ref, actor, body, at
FROM watchbill.fact
WHERE id = ANY (:ids::bigint[])
ORDER BY id
