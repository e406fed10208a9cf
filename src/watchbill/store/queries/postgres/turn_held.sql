-- Lock the leases of this batch's shards, each under its own term: no takeover can overtake the commit.
SELECT shard
FROM watchbill.lease
WHERE role = 'scheduler'
    AND shard = ANY (:shards::integer[])
    AND owner = :owner
    AND term = (:terms::bigint[])[array_position(:shards::integer[], shard)]
FOR SHARE
