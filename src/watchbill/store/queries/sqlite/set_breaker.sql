-- Write the breaker of a dependency; its gate is made if it is new.
INSERT INTO gate (namespace, name, tokens, tokens_at, said, state, watch_at, breaker, canary, canary_fence)
VALUES (:namespace, :name, 0, :now, 0, :state, :watch_at, :after, :canary, :canary_fence)
ON CONFLICT (namespace, name) DO UPDATE
SET
    tokens_at = excluded.tokens_at, state = excluded.state, watch_at = excluded.watch_at, breaker = excluded.breaker,
    canary = excluded.canary, canary_fence = excluded.canary_fence
