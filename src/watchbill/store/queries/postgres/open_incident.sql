-- Open incidents; of one whose cause has an open one, that says what is so now. Gives the ids that there are for them.
-- That somebody is to be told of what is new is written with it.
WITH opened AS (
    INSERT INTO watchbill.incident AS there (id, namespace, cause, members, body, people, opened_at, region, shared)
    SELECT
        new.id, new.namespace, new.cause, new.members, new.body, new.people, (SELECT watchbill.at(:now::bigint)),
        CASE
            WHEN new.everywhere AND EXISTS (SELECT 1 FROM watchbill.region_role) THEN '*'
            ELSE watchbill.own_region()
        END,
        new.everywhere
    FROM unnest(
        :ids::bigint[], :namespaces::text[], :causes::text[], :members::bigint[], :bodies::bytea[], :peoples::text[],
        :everywheres::boolean[]
    ) AS new (id, namespace, cause, members, body, people, everywhere)
    ORDER BY new.namespace, new.cause
    ON CONFLICT (namespace, region, cause) WHERE state = 0 DO UPDATE
    SET members = excluded.members, body = excluded.body, shared = excluded.shared
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
