-- Give live rows another policy, those that have the one that was seen; what runs is judged by it at the next look, which
-- is due now, unless it was asked to stop.
UPDATE watchbill.attempt
SET
    policy = patch.policy,
    span = patch.span,
    watch_at = CASE
        WHEN attempt.state = 1 AND NOT attempt.cancel THEN (SELECT watchbill.at(:now::bigint))
        ELSE attempt.watch_at
    END
FROM unnest(:ids::bigint[], :olds::bytea[], :policies::bytea[], :spans::bigint[]) AS patch (id, was, policy, span)
WHERE attempt.id = patch.id
    AND attempt.policy = patch.was
    AND attempt.state < :done::smallint
RETURNING attempt.id
