-- Give the shards of these runs a lease that somebody can take; gives the runs of those that had none.
WITH made AS (
    INSERT INTO watchbill.lease (role, shard)
    SELECT DISTINCT 'scheduler', shard
    FROM watchbill.run
    WHERE num = ANY (:ids::bigint[])
    ON CONFLICT DO NOTHING
    RETURNING shard
)
SELECT num
FROM watchbill.run
WHERE num = ANY (:ids::bigint[])
    AND shard = ANY (ARRAY(SELECT shard FROM made))
