-- Read the incidents of a namespace, newest first.
SELECT
    id, namespace, cause, state, members, body, opened_at, resolved_at, people, calls,
    (
        SELECT count(*)
        FROM attempt
        WHERE attempt.incident = incident.id
            AND attempt.state = 3
            AND attempt.why IN ('quarantine', 'escalate', 'doubt')
    ) AS waiting,
    ordered_by
FROM incident
WHERE namespace = :namespace
    AND (:resolved OR state = 0)
ORDER BY opened_at DESC, id DESC
LIMIT :limit
