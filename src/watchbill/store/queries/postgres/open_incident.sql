-- Open incidents; of one whose cause has an open one, that says what is so now. Gives the ids that there are for them.
INSERT INTO watchbill.incident AS there (id, namespace, cause, members, body, opened_at)
SELECT new.id, new.namespace, new.cause, new.members, new.body, (SELECT watchbill.at(:now::bigint))
FROM unnest(:ids::bigint[], :namespaces::text[], :causes::text[], :members::bigint[], :bodies::bytea[])
    AS new (id, namespace, cause, members, body)
ORDER BY new.namespace, new.cause
ON CONFLICT (namespace, cause) WHERE state = 0 DO UPDATE
SET members = excluded.members, body = excluded.body
RETURNING id
