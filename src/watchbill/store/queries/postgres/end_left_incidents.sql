-- Resolve the incidents of the owner that calls and runs have left, and nobody else: nothing of them waits any more.
UPDATE watchbill.incident
SET state = 1, resolved_at = watchbill.at(NULL)
WHERE region = ''
    AND state = 0
    AND (calls OR runs OR failed OR asks)
    AND NOT EXISTS (
        SELECT 1
        FROM watchbill.attempt
        WHERE attempt.incident = incident.id
            AND attempt.state = 3
            AND (attempt.why || '') IN ('quarantine', 'escalate', 'doubt')
    )
    AND NOT EXISTS (
        SELECT 1
        FROM watchbill.run
        WHERE run.incident = incident.id
            AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
    )
    AND NOT EXISTS (SELECT 1 FROM watchbill.failed_run WHERE failed_run.incident = incident.id)
    AND NOT (asks AND EXISTS (SELECT 1 FROM watchbill.attempt WHERE attempt.id = incident.id))
