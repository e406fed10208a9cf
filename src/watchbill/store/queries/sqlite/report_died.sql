-- Record that its child died: the loss stands, due for judgement at once.
UPDATE attempt
SET state = 2, result = ?3, ended_at = ?4, watch_at = ?4
WHERE id = ?1
    AND fence = ?2
    AND state = 1
