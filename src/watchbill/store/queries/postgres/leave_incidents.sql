-- Let all calls and runs leave those incidents of the owner that have some of a region, to be gathered anew by those who may
-- read what they say: what an incident of several regions quotes is of one of them, and nobody knows of which.
WITH mixed AS MATERIALIZED (
    SELECT incident.id
    FROM watchbill.incident
    WHERE incident.region = ''
        AND incident.state = 0
        AND EXISTS (
            SELECT 1
            FROM (
                SELECT shard
                FROM watchbill.attempt
                WHERE attempt.incident = incident.id
                    AND attempt.state = 3
                    AND (attempt.why || '') IN ('quarantine', 'escalate', 'doubt')
                UNION ALL
                SELECT shard
                FROM watchbill.run
                WHERE run.incident = incident.id
                    AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
                UNION ALL
                SELECT run.shard
                FROM watchbill.failed_run
                JOIN watchbill.run ON run.num = failed_run.run
                WHERE failed_run.incident = incident.id
            ) AS member
            WHERE member.shard = ANY (ARRAY(SELECT id FROM watchbill.shard WHERE region = :region::text))
        )
),
failed AS (
    UPDATE watchbill.failed_run
    SET incident = NULL
    WHERE incident = ANY (ARRAY(SELECT id FROM mixed))
),
calls AS (
    UPDATE watchbill.attempt
    SET incident = NULL
    WHERE incident = ANY (ARRAY(SELECT id FROM mixed))
        AND state = 3
        AND (why || '') IN ('quarantine', 'escalate', 'doubt')
)
UPDATE watchbill.run
SET incident = NULL
WHERE incident = ANY (ARRAY(SELECT id FROM mixed))
    AND status < 10
    AND (status = 4 OR substr(held, 1, 14) <> 'waits for code')
