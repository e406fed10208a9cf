-- Read what runs have been told and have not taken in.
SELECT
    id, shard, run, kind, ref, actor, body, at
FROM watchbill.fact
WHERE run = ANY (:runs::bigint[])
ORDER BY id
