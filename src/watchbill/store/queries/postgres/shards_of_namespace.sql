-- Give the shard that takes new runs, for each number: the one that was made first.
SELECT n, min(id)
FROM watchbill.shard
WHERE namespace = :namespace
GROUP BY n
