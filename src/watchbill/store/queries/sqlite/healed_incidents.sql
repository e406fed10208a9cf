-- Read open incidents about calls that have no members any more.
SELECT
    id, namespace, cause, state, members, body, opened_at, resolved_at, people, calls, 0 AS waiting, ordered_by
FROM incident
WHERE state = 0
    AND calls = 1
    AND NOT EXISTS (
        SELECT 1
        FROM attempt
        WHERE attempt.incident = incident.id
            AND attempt.state = 3
            AND attempt.why IN ('quarantine', 'escalate', 'doubt')
    )
ORDER BY id
