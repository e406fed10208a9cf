-- Write a breaker that is still as it was seen.
UPDATE gate
SET
    tokens_at = :now, state = :state, watch_at = :watch_at, breaker = :after, canary = :canary,
    canary_fence = :canary_fence
WHERE namespace = :namespace
    AND name = :name
    AND breaker = :seen
