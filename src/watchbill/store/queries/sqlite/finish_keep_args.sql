-- Keep arguments that are too large for a row that was inserted as done.
INSERT INTO blob (run, n, body)
SELECT run, :args_n, :large_args
FROM attempt
WHERE id = :recorded
    AND args = :args
ON CONFLICT DO NOTHING
