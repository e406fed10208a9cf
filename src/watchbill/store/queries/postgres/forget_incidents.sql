-- Forget some incidents that were resolved long ago; what is open is never forgotten.
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
