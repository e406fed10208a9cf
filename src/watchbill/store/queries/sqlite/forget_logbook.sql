-- Forget some of what people ordered long ago.
DELETE FROM logbook
WHERE id IN (
        SELECT id
        FROM logbook
        WHERE at < :before
        ORDER BY at
        LIMIT :limit
    )
