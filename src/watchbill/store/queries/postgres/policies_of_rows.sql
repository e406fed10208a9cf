-- Read the policies of the next live rows of some shards that one of these steps may concern: of questions none does.
SELECT id, step, policy
FROM watchbill.attempt
WHERE id > :after::bigint
    AND shard = ANY (:shards::integer[])
    AND state < :done::smallint
    AND kind <> :ask::smallint
    AND (step = ANY (:steps::text[]) OR position(:ladder::bytea IN policy) > 0)
ORDER BY id
LIMIT :limit::bigint
