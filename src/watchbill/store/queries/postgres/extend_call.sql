-- Give a live call a policy with more time, if it has the one that was seen, and write down who wanted it; what runs is
-- looked at anew, now.
WITH extended AS (
    UPDATE watchbill.attempt
    SET
        policy = :policy::bytea,
        span = :span::bigint,
        watch_at = CASE
            WHEN attempt.state = 1 AND NOT attempt.cancel THEN (SELECT watchbill.at(:now::bigint))
            ELSE attempt.watch_at
        END
    WHERE id = :id::bigint
        AND policy = :was::bytea
        AND state < :done::smallint
    RETURNING run, call
),
reasons AS (
    INSERT INTO watchbill.decision (run, call, fence, n, at, actor, body)
    SELECT run, call, :decision::bigint, 0, (SELECT watchbill.at(:now::bigint)), :actor, :body::bytea
    FROM extended
    ON CONFLICT DO NOTHING
)
SELECT run
FROM extended
