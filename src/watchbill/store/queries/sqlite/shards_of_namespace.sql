-- Read the shards of a namespace, in all regions.
SELECT id
FROM shard
WHERE namespace = :namespace
ORDER BY id
