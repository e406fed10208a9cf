-- Record a result: the loss that the lease put on account is taken back.
UPDATE attempt
SET state = 4, losses = losses - 1, result = ?3, ended_at = ?4, watch_at = NULL
WHERE id = ?1
    AND fence = ?2
    AND state = 1
