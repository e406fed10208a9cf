-- Resolve incidents that are open; gives those that were.
UPDATE watchbill.incident
SET state = 1, resolved_at = (SELECT watchbill.at(:now::bigint))
WHERE id = ANY (:ids::bigint[])
    AND state = :open::smallint
RETURNING id
