-- Read open incidents about calls, runs or a question that have no members any more, or, of runs that have ended, got none
-- for long.
SELECT
    id, namespace, cause, state, members, body, opened_at, resolved_at, people, calls,
    (SELECT count(*) FROM failed_run WHERE failed_run.incident = incident.id) AS waiting, ordered_by, runs, failed,
    asks
FROM incident
WHERE state = 0
    AND (calls = 1 OR runs = 1 OR failed = 1 OR (asks = 1 AND :asks))
    AND NOT (asks AND EXISTS (SELECT 1 FROM attempt WHERE attempt.id = incident.id AND attempt.kind = 1))
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
    AND (
        NOT EXISTS (
            SELECT 1
            FROM failed_run
            WHERE failed_run.incident = incident.id
        )
        OR (failed AND ordered IS NULL AND seen_at < :unseen)
    )
ORDER BY id
