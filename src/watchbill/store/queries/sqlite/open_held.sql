-- Read runs that nothing moves, and why: held, or diverged.
SELECT run.id, run.held
FROM shard
CROSS JOIN run ON run.shard = shard.id
WHERE shard.namespace = :namespace
    AND run.status IN (0, 1, 3, 4)
    AND (run.held IS NOT NULL OR run.status = 4)
ORDER BY run.num
LIMIT :limit
