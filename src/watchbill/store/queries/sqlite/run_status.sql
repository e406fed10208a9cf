-- Read where a run is, without its input.
SELECT num, shard, status
FROM run
WHERE namespace = :namespace
    AND id = :id
