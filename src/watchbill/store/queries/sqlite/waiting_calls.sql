-- Read calls that wait for a person and belong to no incident, with the namespaces of their runs.
SELECT
    attempt.id, attempt.fence, attempt.why, run.namespace, attempt.run_id, attempt.call, attempt.step, attempt.rung,
    attempt.policy, attempt.run, attempt.result, attempt.watch_at
FROM attempt
CROSS JOIN run ON run.num = attempt.run
WHERE attempt.state = 3
    AND attempt.why IN ('quarantine', 'escalate', 'doubt')
    AND attempt.incident IS NULL
ORDER BY attempt.id
LIMIT :limit
