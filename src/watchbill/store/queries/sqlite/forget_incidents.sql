-- Forget some incidents that were resolved long ago; what is open is never forgotten.
DELETE FROM incident
WHERE id IN (
        SELECT id
        FROM incident
        WHERE state = 1
            AND resolved_at < :before
        ORDER BY resolved_at
        LIMIT :limit
    )
RETURNING id
