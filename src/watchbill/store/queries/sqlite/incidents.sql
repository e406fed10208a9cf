-- Read the incidents of a namespace, newest first, with what somebody wants for all members and how many have not heard it.
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
    ordered_by, runs, failed, asks, ordered, ordered_as, ordered_at, per_second,
    CASE WHEN ordered IS NULL THEN 0 WHEN failed THEN (
        SELECT count(*)
        FROM failed_run
        WHERE failed_run.incident = incident.id
            AND failed_run.run > incident.fed_to
            AND failed_run.at <= incident.ordered_at
    ) WHEN runs THEN (
        SELECT count(*)
        FROM run
        WHERE run.incident = incident.id
            AND run.num > incident.fed_to
            AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
    ) ELSE (
        SELECT count(*)
        FROM attempt
        WHERE attempt.incident = incident.id
            AND attempt.id > incident.fed_to
            AND attempt.state = 3
            AND attempt.why IN ('quarantine', 'escalate', 'doubt')
            AND coalesce(attempt.ended_at, 0) <= incident.ordered_at
    ) END AS untold
FROM incident
WHERE namespace = :namespace
    AND (:resolved OR state = 0)
    AND NOT asks -- those are in the inbox
ORDER BY opened_at DESC, id DESC
LIMIT :limit
