-- Forget some of what people ordered long ago.
DELETE FROM watchbill.logbook
WHERE id = ANY (ARRAY(
        SELECT id
        FROM watchbill.logbook
        WHERE at < (SELECT watchbill.at(:now::bigint)) - :kept_for::bigint
        ORDER BY at
        LIMIT :limit::bigint
        FOR UPDATE SKIP LOCKED
    ))
