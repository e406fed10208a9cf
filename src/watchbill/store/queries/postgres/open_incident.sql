-- Open incidents; of one whose cause has an open one, that says what is so now. Gives the ids that there are for them.
-- That somebody is to be told of what is new is written with it.
WITH opened AS (
    INSERT INTO watchbill.incident AS there (id, namespace, cause, members, body, people, opened_at)
    SELECT new.id, new.namespace, new.cause, new.members, new.body, new.people, (SELECT watchbill.at(:now::bigint))
    FROM unnest(
        :ids::bigint[], :namespaces::text[], :causes::text[], :members::bigint[], :bodies::bytea[], :peoples::text[]
    ) AS new (id, namespace, cause, members, body, people)
    ORDER BY new.namespace, new.cause
    ON CONFLICT (namespace, cause) WHERE state = 0 DO UPDATE
    SET members = excluded.members, body = excluded.body
    RETURNING id
),
alerts AS (
    INSERT INTO watchbill.alert (incident, kind, route, due_at)
    SELECT told.incident, 0, told.route, (SELECT watchbill.at(:now::bigint))
    FROM unnest(:told_incidents::bigint[], :told_routes::text[]) AS told (incident, route)
    CROSS JOIN opened
    WHERE opened.id = told.incident
    ON CONFLICT DO NOTHING
)
SELECT id
FROM opened
