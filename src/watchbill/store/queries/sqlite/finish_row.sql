-- Record a result in a user's transaction: only while the row runs under this fence.
UPDATE attempt
SET
    state = 4, losses = losses - 1, ended_at = :now, watch_at = NULL,
    result = CASE WHEN length(:body) > :inline_limit THEN :reference ELSE :body END
WHERE id = :id
    AND fence = :fence
    AND state = 1
RETURNING id
