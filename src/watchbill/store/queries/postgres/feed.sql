-- Tell the next members of an incident what somebody wants for all who had failed by then: each once, so many at a time.
-- When there are no more of them the order is done. Nobody is told if somebody else has told others meanwhile.
-- From then on nobody's time for a decision ends: whose time was over before is not told.
WITH wanted AS MATERIALIZED (
    SELECT id, ordered, ordered_by, ordered_at, fed_to
    FROM watchbill.incident
    WHERE id = :incident::bigint
        AND state = :open::smallint
        AND ordered IS NOT NULL
        AND fed_at IS NOT DISTINCT FROM :seen::bigint
    FOR UPDATE
),
chosen AS MATERIALIZED (
    SELECT member.id, member.run, member.shard
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT attempt.id, attempt.run, attempt.shard
        FROM watchbill.attempt
        CROSS JOIN watchbill.run
        WHERE attempt.incident = wanted.id
            AND attempt.id > wanted.fed_to
            AND attempt.state = 3
            AND (attempt.why || '') IN ('quarantine', 'escalate', 'doubt')
            AND coalesce(attempt.ended_at, 0) <= wanted.ordered_at
            AND run.num = attempt.run
            AND run.status < 10
            AND (
                SELECT fact.id
                FROM watchbill.fact
                WHERE fact.run = attempt.run
                    AND fact.kind = 'resolve'
                    AND fact.ref = to_hex(attempt.id)
            ) IS NULL
        ORDER BY attempt.id
        LIMIT :limit::bigint
        FOR SHARE OF run
    ) AS member
),
timeless AS (
    UPDATE watchbill.attempt
    SET watch_at = NULL, remind_at = NULL
    FROM chosen
    WHERE attempt.id = chosen.id
        AND attempt.incident = (SELECT id FROM wanted)
        AND attempt.state = 3
        AND attempt.why IN ('quarantine', 'escalate', 'doubt')
    RETURNING attempt.id, attempt.run, attempt.shard
),
told AS (
    INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
    SELECT
        timeless.shard, timeless.run, 'resolve', to_hex(timeless.id), ordered_by, ordered,
        (SELECT watchbill.at(:now::bigint))
    FROM timeless
    CROSS JOIN wanted
    ORDER BY timeless.id
    ON CONFLICT (run, kind, ref) DO NOTHING
),
fed AS (
    UPDATE watchbill.incident
    SET
        fed_at = (SELECT watchbill.at(:now::bigint)),
        fed_to = coalesce((SELECT max(id) FROM chosen), incident.fed_to),
        ordered = CASE WHEN (SELECT count(*) FROM chosen) < :limit THEN NULL ELSE incident.ordered END
    WHERE id = (SELECT id FROM wanted)
)
SELECT count(*)
FROM chosen
