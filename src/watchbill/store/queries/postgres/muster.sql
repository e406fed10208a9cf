-- Find calls that wait for a person, runs that nothing moves, and runs that a step has failed, without an incident; incidents
-- without members or with an order; whether there are any about runs; reminders; and questions that nobody was told of.
SELECT
    (SELECT watchbill.at(:now::bigint)) AS now,
    ARRAY(
        SELECT id
        FROM watchbill.attempt
        WHERE state = 3
            AND (why || '') IN ('quarantine', 'escalate', 'doubt')
            AND incident IS NULL
        ORDER BY id
        LIMIT :limit::bigint
    ) AS waiting,
    ARRAY(
        SELECT id
        FROM watchbill.incident
        WHERE state = 0
            AND (calls OR runs OR failed OR (asks AND :asks::boolean))
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
        ORDER BY id
    ) AS healed,
    ARRAY(
        SELECT id
        FROM watchbill.incident
        WHERE state = 0
            AND ordered IS NOT NULL
        ORDER BY id
    ) AS ordered,
    ARRAY(
        SELECT id
        FROM watchbill.attempt
        WHERE remind_at <= (SELECT watchbill.at(:now::bigint))
        ORDER BY remind_at
        LIMIT :limit::bigint
    ) AS due,
    (
        SELECT remind_at
        FROM watchbill.attempt
        WHERE remind_at > (SELECT watchbill.at(:now::bigint))
        ORDER BY remind_at
        LIMIT 1
    ) AS next_at,
    ARRAY(
        SELECT num
        FROM watchbill.run
        WHERE incident IS NULL
            AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
        ORDER BY num + 0
        LIMIT :limit::bigint
    ) AS stuck,
    EXISTS (
        SELECT 1
        FROM watchbill.incident
        WHERE state = 0
            AND runs
    ) AS watched,
    ARRAY(
        SELECT run
        FROM watchbill.failed_run
        WHERE incident IS NULL
        ORDER BY run + 0
        LIMIT :limit::bigint
    ) AS failed,
    (
        SELECT min(seen_at)
        FROM watchbill.incident
        WHERE state = 0
            AND failed
            AND ordered IS NULL
    ) AS seen_at,
    ARRAY(
        SELECT id
        FROM watchbill.attempt
        WHERE :asks
            AND (kind = 1) IS TRUE
            AND incident IS NULL
        ORDER BY id + 0
        LIMIT :limit::bigint
    ) AS asking
