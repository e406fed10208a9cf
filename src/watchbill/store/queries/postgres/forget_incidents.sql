-- Forget some incidents that were resolved long ago, with their alerts; what is open is never forgotten.
WITH forgotten AS (
    DELETE FROM watchbill.incident
    WHERE id = ANY (ARRAY(
        SELECT id
        FROM watchbill.incident
        WHERE state = 1
            AND resolved_at < (SELECT watchbill.at(:now::bigint)) - :kept_for::bigint
        ORDER BY resolved_at
        LIMIT :limit::bigint
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
),
alerts AS (
    DELETE FROM watchbill.alert
    WHERE incident = ANY (ARRAY(SELECT id FROM forgotten))
)
SELECT id
FROM forgotten
