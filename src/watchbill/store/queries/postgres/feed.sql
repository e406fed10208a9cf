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
    SELECT member.id, member.run
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT attempt.id, attempt.run
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
    ) AS member
),
-- The runs before the rows, and both in the order of their numbers, like everybody: members come in another one.
live AS MATERIALIZED (
    SELECT num
    FROM watchbill.run
    WHERE num = ANY (ARRAY(SELECT run FROM chosen))
        AND status < 10
    ORDER BY num
    FOR SHARE
),
here AS MATERIALIZED (
    SELECT id
    FROM watchbill.attempt
    WHERE id = ANY (ARRAY(SELECT chosen.id FROM chosen WHERE chosen.run = ANY (ARRAY(SELECT num FROM live))))
        AND incident = (SELECT id FROM wanted)
        AND state = 3
        AND why IN ('quarantine', 'escalate', 'doubt')
    ORDER BY id
    FOR UPDATE
),
timeless AS (
    UPDATE watchbill.attempt
    SET watch_at = NULL, remind_at = NULL
    WHERE id = ANY (ARRAY(SELECT id FROM here))
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
FROM here
