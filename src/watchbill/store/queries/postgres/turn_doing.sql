-- Name the runs that are about to be advanced, or none, on shards of this owner.
UPDATE watchbill.lease
SET doing = new.doing
FROM unnest(:doing_shards::integer[], :doing_runs::bigint[]) AS new (shard, doing)
WHERE (SELECT whole FROM mine)
    AND role = 'scheduler'
    AND lease.shard = ANY (:doing_shards::integer[])
    AND lease.shard = new.shard
    AND owner = :owner
