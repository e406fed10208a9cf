-- Read all shards, each with its namespace and region.
SELECT id, namespace, region
FROM watchbill.shard
