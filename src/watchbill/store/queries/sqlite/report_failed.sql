-- Record that it raised: a failure instead of a loss, due for judgement at once.
UPDATE attempt
SET state = 2, losses = losses - 1, failures = failures + 1, result = ?3, ended_at = ?4, watch_at = ?4
WHERE id = ?1
    AND fence = ?2
    AND state = 1
