-- Attach runs that have ended, and that belong to none, to the open incident of their cause, or open it; not for none.
-- That somebody is to be told of what is new is written with it.
WITH seen AS MATERIALIZED (
    SELECT *
    FROM unnest(:nums::bigint[], :places::integer[]) AS one (num, place)
),
belonging AS MATERIALIZED (
    SELECT failed_run.run, failed_run.at, seen.place
    FROM seen
    CROSS JOIN watchbill.failed_run
    WHERE failed_run.run = seen.num
        AND (failed_run.incident IS NULL) IS TRUE -- never found by it: it is found by its number
    ORDER BY failed_run.run
    FOR UPDATE OF failed_run
),
news AS MATERIALIZED (
    SELECT *
    FROM unnest(
        :new_ids::bigint[], :new_namespaces::text[], :new_causes::text[], :new_bodies::bytea[], :new_peoples::text[],
        :new_regions::text[]
    ) WITH ORDINALITY AS new (id, namespace, cause, body, people, region, place)
    CROSS JOIN LATERAL (
        SELECT count(*) AS runs, max(at) AS seen_at FROM belonging WHERE belonging.place = new.place
    ) AS counted
    WHERE counted.runs > 0
),
opened AS (
    INSERT INTO watchbill.incident AS known (id, namespace, region, cause, members, body, people, failed, opened_at, seen_at)
    SELECT id, namespace, region, cause, runs, body, people, true, (SELECT watchbill.at(:now::bigint)), seen_at
    FROM news
    ORDER BY namespace, cause, region
    ON CONFLICT (namespace, region, cause) WHERE state = 0 DO UPDATE
    SET members = known.members + excluded.members, seen_at = greatest(known.seen_at, excluded.seen_at)
    RETURNING id, namespace, region, cause
),
attached AS (
    UPDATE watchbill.failed_run
    SET incident = opened.id
    FROM belonging
    CROSS JOIN news
    CROSS JOIN opened
    WHERE failed_run.run = belonging.run
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
