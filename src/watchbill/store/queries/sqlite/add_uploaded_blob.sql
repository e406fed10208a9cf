-- Make an upload a blob of its run, under the run's next number.
INSERT INTO blob (run, n, body, upload, size)
SELECT :run, coalesce(max(n), 0) + 1, x'', :id, :size
FROM blob
WHERE run = :run
RETURNING n
