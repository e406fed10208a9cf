-- Record that its child died: the loss stands, due for judgement at once. It may have taken effect.
UPDATE attempt
SET state = 2, unsure = 1, result = ?3, ended_at = ?4, watch_at = ?4
WHERE id = ?1
    AND fence = ?2
    AND state = 1
