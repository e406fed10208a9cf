-- Give a region's shards in the order of their numbers.
SELECT id
FROM watchbill.shard
WHERE namespace = :namespace
    AND region = :region
ORDER BY n
