-- Write breakers whose gates this transaction has locked.
UPDATE watchbill.gate
SET
    state = move.state, watch_at = move.watch_at, breaker = move.after, canary = move.canary,
    canary_fence = move.canary_fence, tokens_at = (SELECT watchbill.at(:now::bigint))
FROM unnest(
    :namespaces::text[], :names::text[], :afters::bytea[], :states::smallint[], :watch_ats::bigint[],
    :canaries::bigint[], :canary_fences::bigint[]
) AS move (namespace, name, after, state, watch_at, canary, canary_fence)
WHERE gate.namespace = move.namespace
    AND gate.name = move.name
