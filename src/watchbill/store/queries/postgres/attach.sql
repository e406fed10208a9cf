-- Attach calls that still wait, as they were seen, to the open incident of their cause, or open it; not for none of them.
-- That somebody is to be told of what is new is written with it; and the time that people have begins, unless one of them
-- has decided: it never ends before those who had an attempt in doubt can no longer act, as it was judged.
WITH seen AS MATERIALIZED (
    SELECT *
    FROM unnest(:ids::bigint[], :fences::bigint[], :whys::text[], :watch_ats::bigint[], :withins::bigint[], :places::integer[])
        AS one (id, fence, why, watch_at, within, place)
),
belonging AS MATERIALIZED (
    SELECT
        attempt.id, seen.place,
        CASE
            WHEN attempt.watch_at >= :untold::bigint
                THEN greatest((SELECT watchbill.at(:now::bigint)) + seen.within, attempt.watch_at - :untold::bigint)
            ELSE attempt.watch_at
        END AS until
    FROM seen
    CROSS JOIN watchbill.attempt
    WHERE attempt.id = seen.id
        AND attempt.fence = seen.fence
        AND attempt.why = seen.why
        AND attempt.watch_at IS NOT DISTINCT FROM seen.watch_at -- else others are asked by now
        AND attempt.state = :parked::smallint
        AND attempt.incident IS NULL
    ORDER BY attempt.id
    FOR UPDATE OF attempt
),
news AS MATERIALIZED (
    SELECT *
    FROM unnest(
        :new_ids::bigint[], :new_namespaces::text[], :new_causes::text[], :new_bodies::bytea[], :new_peoples::text[],
        :new_regions::text[]
    ) WITH ORDINALITY AS new (id, namespace, cause, body, people, region, place)
    CROSS JOIN LATERAL (SELECT count(*) AS calls FROM belonging WHERE belonging.place = new.place) AS counted
    WHERE counted.calls > 0
),
opened AS (
    INSERT INTO watchbill.incident AS known (id, namespace, region, cause, members, body, people, calls, opened_at)
    SELECT id, namespace, region, cause, calls, body, people, true, (SELECT watchbill.at(:now::bigint))
    FROM news
    ORDER BY namespace, cause, region
    ON CONFLICT (namespace, region, cause) WHERE state = 0 DO UPDATE
    SET members = known.members + excluded.members
    RETURNING id, namespace, region, cause
),
attached AS (
    UPDATE watchbill.attempt
    SET
        incident = opened.id,
        watch_at = belonging.until,
        remind_at = CASE
            WHEN attempt.watch_at >= :untold
                THEN (SELECT watchbill.at(:now::bigint)) + (belonging.until - (SELECT watchbill.at(:now::bigint))) / 2
            ELSE attempt.remind_at
        END
    FROM belonging
    CROSS JOIN news
    CROSS JOIN opened
    WHERE attempt.id = belonging.id
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
SELECT news.place, news.calls, opened.id = news.id AS new
FROM news
CROSS JOIN opened
WHERE opened.namespace = news.namespace
    AND opened.region = news.region
    AND opened.cause = news.cause
