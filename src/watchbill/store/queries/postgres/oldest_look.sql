-- Read when the row is due that supervisors look at next, and what time it is.
SELECT
    (
        SELECT watch_at
        FROM watchbill.attempt
        WHERE watch_at IS NOT NULL
        ORDER BY watch_at, id
        LIMIT 1
    ),
    (SELECT watchbill.at(:now::bigint))
