-- Say how these runs stand: the last journal entry of those that ended; of the others why nothing moves, if so.
SELECT
    run.num, run.status, run.held,
    CASE WHEN run.status >= 10 THEN (
        SELECT watchbill.whole(journal.run, body)
        FROM watchbill.journal
        WHERE journal.run = run.num
        ORDER BY seq DESC
        LIMIT 1
    ) END AS body,
    stuck.call,
    CASE
        WHEN run.status = 4 THEN (
            SELECT body
            FROM watchbill.decision
            WHERE decision.run = run.num
                AND actor = 'scheduler'
            ORDER BY id DESC
            LIMIT 1
        )
        WHEN stuck.call IS NOT NULL THEN (
            SELECT body
            FROM watchbill.decision
            WHERE decision.run = run.num
                AND decision.call = stuck.call
            ORDER BY id DESC
            LIMIT 1
        )
    END AS reason
FROM unnest(:nums::bigint[]) WITH ORDINALITY AS asked (num, place)
CROSS JOIN watchbill.run
LEFT JOIN LATERAL (
    SELECT quarantined.call
    FROM watchbill.attempt AS quarantined
    WHERE quarantined.run = run.num
        AND run.status < 10
        AND quarantined.state = 3
        AND quarantined.why = 'quarantine'
        AND NOT EXISTS (
            SELECT 1
            FROM watchbill.attempt AS moving
            WHERE moving.run = run.num
                AND (
                    moving.state IN (0, 1, 2)
                    OR (moving.state = 3 AND moving.why IS DISTINCT FROM 'quarantine')
                )
        )
    ORDER BY quarantined.id
    LIMIT 1
) AS stuck ON true
WHERE run.num = asked.num
ORDER BY place
