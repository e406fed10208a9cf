-- Resolve incidents that are open; gives those that were.
-- Whoever was to be told that one is open is told of this, too.
WITH resolved AS (
    UPDATE watchbill.incident
    SET state = 1, resolved_at = (SELECT watchbill.at(:now::bigint))
    WHERE id = ANY (:ids::bigint[])
        AND state = :open::smallint
    RETURNING id
),
alerts AS (
    INSERT INTO watchbill.alert (incident, kind, route, due_at)
    SELECT incident, 1, route, (SELECT watchbill.at(:now::bigint))
    FROM watchbill.alert
    WHERE incident = ANY (ARRAY(SELECT id FROM resolved))
        AND kind = 0
        AND state <> 2 -- given up: who heard nothing of the beginning is told of nothing else
    ON CONFLICT DO NOTHING
)
SELECT id
FROM resolved
