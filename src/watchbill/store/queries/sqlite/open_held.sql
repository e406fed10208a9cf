-- Read runs that nothing moves, and why: held, or diverged.
SELECT run.id, run.held
FROM shard
CROSS JOIN run ON run.shard = shard.id
WHERE shard.namespace = :namespace
    AND run.status < 10
    AND run.status <> 2
    AND (run.held IS NOT NULL OR run.status = 4)
ORDER BY run.num
LIMIT :limit
