-- Record a result in a user's transaction for an attempt that may have its row by now: only while it runs under its fence.
UPDATE attempt
SET
    state = 4, losses = losses - 1, ended_at = :now, watch_at = NULL,
    result = CASE WHEN length(:body) > :inline_limit THEN :reference ELSE :body END
WHERE run = :run
    AND call = :call
    AND fence = :fence
    AND state = 1
RETURNING id
