-- Read the shards of a namespace, in all regions.
SELECT id
FROM watchbill.shard
WHERE namespace = :namespace
ORDER BY id
