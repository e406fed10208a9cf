-- Read the incidents of a namespace, newest first.
SELECT
    id, namespace, cause, state, members, body, opened_at, resolved_at, people, calls,
    (
        SELECT count(*)
        FROM attempt
        WHERE attempt.incident = incident.id
            AND attempt.state = 3
            AND attempt.why IN ('quarantine', 'escalate', 'doubt')
    ) + (
        SELECT count(*)
        FROM run
        WHERE run.incident = incident.id
            AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
    ) + (
        SELECT count(*)
        FROM failed_run
        WHERE failed_run.incident = incident.id
    ) AS waiting,
    ordered_by, runs, failed, asks
FROM incident
WHERE namespace = :namespace
    AND (:resolved OR state = 0)
    AND NOT asks -- those are in the inbox
ORDER BY opened_at DESC, id DESC
LIMIT :limit
