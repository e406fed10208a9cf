-- Tell the next runs of an incident what somebody wants for all: each once, so many at a time. When there are no more of
-- them the order is done. Nobody is told if somebody else has told others meanwhile.
WITH wanted AS MATERIALIZED (
    SELECT id, ordered, ordered_as, ordered_by, ordered_at, fed_to
    FROM watchbill.incident
    WHERE id = :incident::bigint
        AND state = :open::smallint
        AND ordered IS NOT NULL
        AND fed_at IS NOT DISTINCT FROM :seen::bigint
    FOR UPDATE
),
chosen AS MATERIALIZED (
    SELECT member.num, member.shard
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT run.num, run.shard
        FROM watchbill.run
        WHERE run.incident = wanted.id
            AND run.num + 0 > wanted.fed_to
            AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
        ORDER BY run.num + 0
        LIMIT :limit::bigint
        FOR SHARE OF run
    ) AS member
),
told AS (
    INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
    SELECT
        chosen.shard, chosen.num, ordered_as, to_hex(wanted.id) || '.' || ordered_at, ordered_by, ordered,
        (SELECT watchbill.at(:now::bigint))
    FROM chosen
    CROSS JOIN wanted
    ORDER BY chosen.num
    ON CONFLICT (run, kind, ref) DO NOTHING
),
fed AS (
    UPDATE watchbill.incident
    SET
        fed_at = (SELECT watchbill.at(:now::bigint)),
        fed_to = coalesce((SELECT max(num) FROM chosen), incident.fed_to),
        ordered = CASE WHEN (SELECT count(*) FROM chosen) < :limit THEN NULL ELSE incident.ordered END
    WHERE id = (SELECT id FROM wanted)
)
SELECT count(*)
FROM chosen
