-- Make what had begun ready again at its old rank, uncharged; a cancelled one fails instead, and counts. It may have taken
-- effect.
UPDATE attempt
SET
    state = CASE WHEN cancel THEN 2 ELSE 0 END,
    losses = losses - 1,
    failures = failures + (cancel <> 0),
    unsure = 1,
    result = ?3,
    ended_at = CASE WHEN cancel THEN ?4 END,
    watch_at = CASE WHEN cancel THEN ?4 END
WHERE id = ?1
    AND fence = ?2
    AND state = 1
