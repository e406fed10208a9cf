-- Read calls that wait for a person because they keep killing whoever runs them.
SELECT run.id, attempt.call
FROM watchbill.shard
JOIN watchbill.run ON run.shard = shard.id
JOIN watchbill.attempt ON attempt.run = run.num
WHERE shard.namespace = :namespace
    AND run.status IN (0, 1, 3, 4)
    AND attempt.state = 3
    AND attempt.why = 'quarantine'
ORDER BY attempt.id
LIMIT :limit::bigint
