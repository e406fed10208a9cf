-- Read calls that wait for a person, with the namespaces of their runs; what has moved on meanwhile is left out.
SELECT
    attempt.id, attempt.fence, attempt.why, run.namespace, attempt.run_id, attempt.call, attempt.step, attempt.rung,
    attempt.policy, watchbill.whole(attempt.run, attempt.result), attempt.watch_at
FROM watchbill.attempt
CROSS JOIN watchbill.run
WHERE attempt.id = ANY (:ids::bigint[])
    AND run.num = attempt.run
    AND attempt.state = :parked::smallint
    AND attempt.why IS NOT NULL
ORDER BY attempt.id
