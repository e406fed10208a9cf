-- Say what time it is, and for how long the row has waited that is due for a look longest; no more than the first of an
-- index is read.
SELECT
    (SELECT watchbill.at(:now::bigint)),
    coalesce((
        SELECT (SELECT watchbill.at(:now::bigint)) - watch_at
        FROM watchbill.attempt
        WHERE watch_at <= (SELECT watchbill.at(:now::bigint))
        ORDER BY watch_at, id
        LIMIT 1
    ), 0)
