-- Insert an agent, or prolong it if it has joined already; one that was lost stays lost.
-- What an operator wants of whom it was before, and has given to that one, stays so; and that it is suspended.
-- Some who are gone since long are forgotten, but nobody whom a running attempt still names: that must be found first.
WITH gone AS MATERIALIZED (
    (
        SELECT id
        FROM watchbill.agent
        WHERE state <> 1
            AND gone_at < (SELECT watchbill.at(:now::bigint)) - :kept_for::bigint
        ORDER BY gone_at
        LIMIT :limit::bigint
    )
    UNION ALL
    (
        SELECT id
        FROM watchbill.agent
        WHERE state = 1
            AND until < (SELECT watchbill.at(:now::bigint)) - :kept_for::bigint
        LIMIT :limit::bigint
    )
),
forgotten AS (
    DELETE FROM watchbill.agent
    WHERE id = ANY (ARRAY(
        SELECT agent.id
        FROM watchbill.agent
        WHERE agent.id = ANY (ARRAY(SELECT id FROM gone))
            AND agent.id <> :agent
            -- Again: one that beats at this moment is not gone.
            AND CASE agent.state WHEN 1 THEN agent.until ELSE agent.gone_at END
                < (SELECT watchbill.at(:now::bigint)) - :kept_for::bigint
            -- Asked for each of them: a join could read all that runs.
            AND (
                SELECT attempt.id
                FROM watchbill.attempt
                WHERE attempt.agent = agent.id
                    AND attempt.state = 1
                LIMIT 1
            ) IS NULL
        FOR UPDATE SKIP LOCKED
    ))
)
INSERT INTO watchbill.agent (
    id, state, until, namespace, region, name, info, needs, slots, joined_at, beat_at, witness, wish,
    suspension, judged_from
)
VALUES (
    :agent, 1, coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904),
    :namespace, :region, :name, :info,
    coalesce((SELECT needs FROM watchbill.agent WHERE id = :before::bigint), :needs::text[]), :slots,
    (SELECT watchbill.at(:now::bigint)), (SELECT watchbill.at(:now::bigint)), :witness,
    coalesce((SELECT wish FROM watchbill.agent WHERE id = :before::bigint), 0),
    (SELECT suspension FROM watchbill.agent WHERE id = :before::bigint),
    coalesce((SELECT judged_from FROM watchbill.agent WHERE id = :before::bigint), 0)
)
ON CONFLICT (id) DO UPDATE
    SET until = excluded.until, beat_at = excluded.beat_at, witness = excluded.witness
    WHERE agent.state = 1
