-- Take alerts that are due, by these routes, for a while: nobody else sends them then; the end of an incident not before
-- its opening was told, and never if that was given up. Says also when the next one is due that was not yet, and what time it is.
WITH due AS MATERIALIZED (
    SELECT one.incident, one.kind, one.route
    FROM unnest(:routes::text[]) AS mine (route)
    CROSS JOIN LATERAL (
        SELECT alert.incident, alert.kind, alert.route, alert.due_at
        FROM watchbill.alert
        WHERE alert.state = 0
            AND alert.route = mine.route
            AND alert.due_at <= (SELECT watchbill.at(:now::bigint))
            AND NOT EXISTS (
                SELECT 1
                FROM watchbill.alert AS opened
                WHERE opened.incident = alert.incident
                    AND opened.route = alert.route
                    AND opened.kind < alert.kind
                    AND (opened.state = :due::smallint OR (opened.kind = 0 AND opened.state = :given_up::smallint))
            )
        ORDER BY alert.due_at
        LIMIT :limit::bigint
        FOR UPDATE SKIP LOCKED
    ) AS one
    ORDER BY one.due_at, one.incident, one.kind
    LIMIT :limit
),
taken AS (
    UPDATE watchbill.alert
    SET tries = tries + 1, due_at = (SELECT watchbill.at(:now::bigint)) + :lasting::bigint
    FROM due
    WHERE alert.incident = due.incident
        AND alert.kind = due.kind
        AND alert.route = due.route
        AND alert.state = :due::smallint
    RETURNING alert.incident, alert.kind, alert.route, alert.tries
)
SELECT
    (
        SELECT min(one.due_at)
        FROM unnest(:routes::text[]) AS mine (route)
        CROSS JOIN LATERAL (
            SELECT due_at
            FROM watchbill.alert
            WHERE state = 0
                AND route = mine.route
                AND due_at > (SELECT watchbill.at(:now::bigint))
            ORDER BY due_at
            LIMIT 1
        ) AS one
    ) AS next_at,
    (SELECT watchbill.at(:now::bigint)) AS now,
    taken.incident, taken.kind, taken.route, taken.tries
FROM (SELECT 1) AS once
LEFT JOIN taken ON true
