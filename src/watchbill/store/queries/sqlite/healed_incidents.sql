-- Read open incidents about calls, or runs, that have no members any more.
SELECT
    id, namespace, cause, state, members, body, opened_at, resolved_at, people, calls, 0 AS waiting, ordered_by,
    runs
FROM incident
WHERE state = 0
    AND (calls = 1 OR runs = 1)
    AND NOT EXISTS (
        SELECT 1
        FROM attempt
        WHERE attempt.incident = incident.id
            AND attempt.state = 3
            AND attempt.why IN ('quarantine', 'escalate', 'doubt')
    )
    AND NOT EXISTS (
        SELECT 1
        FROM run
        WHERE run.incident = incident.id
            AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
    )
ORDER BY id
