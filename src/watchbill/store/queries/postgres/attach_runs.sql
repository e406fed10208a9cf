-- Attach runs that nothing moves, as they were seen, to the open incident of their cause, or open it; not for none.
-- That somebody is to be told of what is new is written with it.
WITH seen AS MATERIALIZED (
    SELECT *
    FROM unnest(:nums::bigint[], :statuses::smallint[], :helds::text[], :places::integer[])
        AS one (num, status, held, place)
),
belonging AS MATERIALIZED (
    SELECT run.num, seen.place
    FROM seen
    CROSS JOIN watchbill.run
    WHERE run.num = seen.num
        AND run.status = seen.status
        AND run.held IS NOT DISTINCT FROM seen.held
        AND (run.incident IS NULL) IS TRUE -- never found by it: it is found by its number
    ORDER BY run.num
    FOR UPDATE OF run
),
news AS MATERIALIZED (
    SELECT *
    FROM unnest(
        :new_ids::bigint[], :new_namespaces::text[], :new_causes::text[], :new_bodies::bytea[], :new_peoples::text[],
        :new_regions::text[]
    ) WITH ORDINALITY AS new (id, namespace, cause, body, people, region, place)
    CROSS JOIN LATERAL (SELECT count(*) AS runs FROM belonging WHERE belonging.place = new.place) AS counted
    WHERE counted.runs > 0
),
opened AS (
    INSERT INTO watchbill.incident AS known (id, namespace, region, cause, members, body, people, runs, opened_at)
    SELECT id, namespace, region, cause, runs, body, people, true, (SELECT watchbill.at(:now::bigint))
    FROM news
    ORDER BY namespace, cause, region
    ON CONFLICT (namespace, region, cause) WHERE state = 0 DO UPDATE
    SET members = known.members + excluded.members
    RETURNING id, namespace, region, cause
),
attached AS (
    UPDATE watchbill.run
    SET incident = opened.id
    FROM belonging
    CROSS JOIN news
    CROSS JOIN opened
    WHERE run.num = belonging.num
        AND news.place = belonging.place
        AND opened.namespace = news.namespace
        AND opened.region = news.region
        AND opened.cause = news.cause
),
alerts AS (
    INSERT INTO watchbill.alert (incident, kind, route, due_at)
    SELECT told.incident, 0, told.route, (SELECT watchbill.at(:now::bigint))
    FROM unnest(:told_incidents::bigint[], :told_routes::text[]) AS told (incident, route)
    CROSS JOIN opened
    WHERE opened.id = told.incident
    ON CONFLICT DO NOTHING
)
SELECT news.place, news.runs, opened.id = news.id AS new
FROM news
CROSS JOIN opened
WHERE opened.namespace = news.namespace
    AND opened.region = news.region
    AND opened.cause = news.cause
