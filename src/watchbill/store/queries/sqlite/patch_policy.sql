-- Give a live row another policy, if it has the one that was seen; what runs is judged by it at the next look, which is
-- due now, unless it was asked to stop.
UPDATE attempt
SET
    policy = :policy,
    span = :span,
    watch_at = CASE WHEN state = 1 AND NOT cancel THEN :now ELSE watch_at END
WHERE id = :id
    AND policy = :was
    AND state < 4
