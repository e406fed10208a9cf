-- Find the uploads of these shards whose term is over: no turn can take them any more.
SELECT run, id, shard, 0::bigint, term
FROM watchbill.upload
WHERE shard = ANY (:shards::integer[])
    AND term < (SELECT lease.term FROM watchbill.lease WHERE lease.role = 'scheduler' AND lease.shard = upload.shard)
