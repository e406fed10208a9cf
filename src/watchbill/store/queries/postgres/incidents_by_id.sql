-- Read incidents by their numbers.
SELECT
    id, namespace, cause, state, members, body, opened_at, resolved_at, people, calls,
    (
        SELECT count(*)
        FROM watchbill.attempt
        WHERE attempt.incident = incident.id
            AND attempt.state = 3
            AND (attempt.why || '') IN ('quarantine', 'escalate', 'doubt')
    ) + (
        SELECT count(*)
        FROM watchbill.run
        WHERE run.incident = incident.id
            AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
    ) + (
        SELECT count(*)
        FROM watchbill.failed_run
        WHERE failed_run.incident = incident.id
    ) AS waiting,
    ordered_by, runs, failed, asks
FROM watchbill.incident
WHERE id = ANY (:ids::bigint[])
ORDER BY id
