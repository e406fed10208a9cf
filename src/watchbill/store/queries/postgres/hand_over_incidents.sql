-- Give a region the open incidents of the owner all of whose members are its own; a cause that is open there stays apart.
UPDATE watchbill.incident
SET region = :region::text
WHERE region = ''
    AND state = 0
    AND (calls OR runs OR failed OR asks)
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
            UNION ALL
            SELECT shard
            FROM watchbill.attempt
            WHERE attempt.id = incident.id
                AND incident.asks
        ) AS member
        HAVING bool_and(member.shard = ANY (ARRAY(SELECT id FROM watchbill.shard WHERE region = :region::text)))
    )
    AND NOT EXISTS (
        SELECT 1
        FROM watchbill.incident AS theirs
        WHERE theirs.namespace = incident.namespace
            AND theirs.region = :region::text
            AND theirs.cause = incident.cause
            AND theirs.state = 0
    )
