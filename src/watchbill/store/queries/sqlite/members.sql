-- Read the schedulers that share the shards of a region now, by id.
SELECT id, knows, info
FROM scheduler
WHERE namespace = :namespace
    AND region = :region
    AND until > :now
ORDER BY id
