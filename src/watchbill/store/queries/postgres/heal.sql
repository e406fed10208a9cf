-- Resolve incidents whose members are all gone, or, of runs that have ended, that got none for long; one that has got more
-- since it was seen is open.
-- Whoever was to be told that one is open is told of this, too.
WITH resolved AS (
    UPDATE watchbill.incident
    SET state = 1, resolved_at = (SELECT watchbill.at(:now::bigint)), ordered = NULL
    FROM unnest(:ids::bigint[], :members::bigint[]) AS seen (id, members)
    WHERE incident.id = seen.id
        AND incident.state = :open::smallint
        AND incident.members = seen.members
        AND (
            SELECT attempt.id
            FROM watchbill.attempt
            WHERE attempt.id = incident.id
                AND incident.asks
                AND (attempt.kind = 1) IS TRUE -- never found by it: it is found by its number
        ) IS NULL
        AND (
            SELECT attempt.id
            FROM watchbill.attempt
            WHERE attempt.incident = incident.id
                AND attempt.state = 3
                AND (attempt.why || '') IN ('quarantine', 'escalate', 'doubt')
            ORDER BY attempt.id
            LIMIT 1
        ) IS NULL
        AND (
            SELECT run.num
            FROM watchbill.run
            WHERE run.incident = incident.id
                AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
            ORDER BY run.num + 0
            LIMIT 1
        ) IS NULL
        AND (
            (
                SELECT failed_run.run
                FROM watchbill.failed_run
                WHERE failed_run.incident = incident.id
                ORDER BY failed_run.run + 0
                LIMIT 1
            ) IS NULL
            OR (failed AND ordered IS NULL AND seen_at < (SELECT watchbill.at(:now::bigint)) - :unseen_for::bigint)
        )
    RETURNING incident.id
),
alerts AS (
    INSERT INTO watchbill.alert (incident, kind, route, due_at)
    SELECT incident, 1, route, (SELECT watchbill.at(:now::bigint))
    FROM watchbill.alert
    WHERE incident = ANY (ARRAY(SELECT id FROM resolved))
        AND kind = 0
        AND state <> 2 -- given up: who heard nothing of the beginning is told of nothing else
    ON CONFLICT DO NOTHING
)
SELECT id
FROM resolved
