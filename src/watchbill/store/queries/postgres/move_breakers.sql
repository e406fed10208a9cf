-- Write breakers that are still as they were seen; gives the names of those that were.
UPDATE watchbill.gate
SET
    state = move.state, watch_at = move.watch_at, breaker = move.after, canary = move.canary,
    canary_fence = move.canary_fence, tokens_at = (SELECT watchbill.at(:now::bigint))
FROM unnest(
    :namespaces::text[], :names::text[], :seen::bytea[], :afters::bytea[], :states::smallint[], :watch_ats::bigint[],
    :canaries::bigint[], :canary_fences::bigint[]
) AS move (namespace, name, seen, after, state, watch_at, canary, canary_fence)
WHERE gate.namespace = move.namespace
    AND gate.name = move.name
    AND gate.breaker = move.seen
RETURNING gate.namespace, gate.name
