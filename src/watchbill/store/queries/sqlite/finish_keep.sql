-- Keep a recorded result that is too large for its row.
INSERT INTO blob (run, n, body)
SELECT run, :n, :body
FROM attempt
WHERE id = :recorded
    AND length(:body) > :inline_limit
