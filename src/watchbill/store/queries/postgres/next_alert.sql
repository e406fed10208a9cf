-- Say when the next alert is due, by these routes, and what time it is.
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
    (SELECT watchbill.at(:now::bigint)) AS now
