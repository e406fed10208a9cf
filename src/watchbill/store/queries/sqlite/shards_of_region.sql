-- Give a region's shards in the order of their numbers.
SELECT id
FROM shard
WHERE namespace = :namespace
    AND region = :region
ORDER BY n
