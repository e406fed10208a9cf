-- Read calls that wait for a person because they keep killing whoever runs them.
SELECT run.id, attempt.call
FROM shard
CROSS JOIN run ON run.shard = shard.id
CROSS JOIN attempt ON attempt.run = run.num
WHERE shard.namespace = :namespace
    AND run.status < 10
    AND run.status <> 2
    AND attempt.state = 3
    AND attempt.why = 'quarantine'
ORDER BY attempt.id
LIMIT :limit
