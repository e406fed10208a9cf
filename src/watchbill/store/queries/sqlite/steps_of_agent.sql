-- Read what an agent runs, so many.
SELECT run_id, call, step
FROM attempt
WHERE agent = :agent
    AND state = 1
LIMIT :limit
