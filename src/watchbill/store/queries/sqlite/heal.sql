-- Resolve an incident whose members are all gone, or, of runs that have ended, that got none for long; one that has got
-- more since it was seen is open.
UPDATE incident
SET state = 1, resolved_at = :now, ordered = NULL
WHERE id = :id
    AND state = 0
    AND members = :members
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
