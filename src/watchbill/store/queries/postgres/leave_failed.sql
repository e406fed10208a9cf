-- Let the next runs of an incident belong to it no longer, and write down who wants that: so many at a time. When there are
-- no more of them the order is done. Nothing if somebody else has done so since it was seen.
WITH wanted AS MATERIALIZED (
    SELECT id, ordered_by, ordered_at, fed_to
    FROM watchbill.incident
    WHERE id = :incident::bigint
        AND state = :open::smallint
        AND failed
        AND ordered IS NOT NULL
        AND fed_at IS NOT DISTINCT FROM :seen::bigint
    FOR UPDATE
),
chosen AS MATERIALIZED (
    SELECT member.run
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT failed_run.run
        FROM watchbill.failed_run
        WHERE failed_run.incident = wanted.id
            AND failed_run.run + 0 > wanted.fed_to
            AND (failed_run.at <= wanted.ordered_at) IS TRUE
        ORDER BY failed_run.run + 0
        LIMIT :limit::bigint
        FOR UPDATE
    ) AS member
),
told AS (
    INSERT INTO watchbill.decision (run, call, fence, n, at, actor, body)
    SELECT chosen.run, '', wanted.id, -1, (SELECT watchbill.at(:now::bigint)), wanted.ordered_by, :decision::bytea
    FROM chosen
    CROSS JOIN wanted
    ON CONFLICT DO NOTHING
),
left_alone AS (
    DELETE FROM watchbill.failed_run
    WHERE run = ANY (ARRAY(SELECT run FROM chosen))
),
fed AS (
    UPDATE watchbill.incident
    SET
        fed_at = (SELECT watchbill.at(:now::bigint)),
        fed_to = coalesce((SELECT max(run) FROM chosen), incident.fed_to),
        ordered = CASE WHEN (SELECT count(*) FROM chosen) < :limit THEN NULL ELSE incident.ordered END
    WHERE id = (SELECT id FROM wanted)
)
SELECT count(*)
FROM chosen
