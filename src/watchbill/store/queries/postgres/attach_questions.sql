-- Open an incident for each question that is still open and has none, with its number; that somebody is to be told of it is
-- written with it.
WITH open AS MATERIALIZED (
    SELECT id
    FROM watchbill.attempt
    WHERE id = ANY (:new_ids::bigint[])
        AND (kind = 1) IS TRUE -- never found by these: they are found by their numbers
        AND (incident IS NULL) IS TRUE
    ORDER BY id
    FOR UPDATE
),
attached AS (
    UPDATE watchbill.attempt
    SET incident = id
    WHERE id = ANY (ARRAY(SELECT id FROM open))
),
opened AS (
    INSERT INTO watchbill.incident (id, namespace, region, cause, members, body, people, asks, opened_at)
    SELECT new.id, new.namespace, new.region, new.cause, 1, new.body, new.people, true, (SELECT watchbill.at(:now::bigint))
    FROM unnest(
        :new_ids::bigint[], :new_namespaces::text[], :new_causes::text[], :new_bodies::bytea[], :new_peoples::text[],
        :new_regions::text[]
    ) AS new (id, namespace, cause, body, people, region)
    WHERE new.id = ANY (ARRAY(SELECT id FROM open))
    ORDER BY new.namespace, new.cause
    ON CONFLICT DO NOTHING
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
