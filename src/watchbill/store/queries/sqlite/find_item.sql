-- Find an item of the inbox: who holds it, and what it is an item of.
SELECT attempt.run, attempt.shard, attempt.call, attempt.claimed_by, attempt.claimed_until, run.status, attempt.kind
FROM attempt
CROSS JOIN run ON run.num = attempt.run
WHERE attempt.id = :item
    AND (attempt.kind = 1 OR (attempt.state = 3 AND attempt.why IN ('quarantine', 'escalate', 'doubt')))
    AND run.namespace = :namespace
