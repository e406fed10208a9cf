-- Keep one large body beside its run, under the run's next number.
INSERT INTO blob (run, n, body)
SELECT :run, coalesce(max(n), 0) + 1, :body
FROM blob
WHERE run = :run
RETURNING n
