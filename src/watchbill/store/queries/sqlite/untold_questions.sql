-- Read questions that nobody was told of, with the namespaces of their runs.
SELECT attempt.id, run.namespace, attempt.run_id, attempt.call, attempt.run, attempt.args
FROM attempt
CROSS JOIN run ON run.num = attempt.run
WHERE attempt.kind = 1
    AND attempt.incident IS NULL
ORDER BY attempt.id
LIMIT :limit
