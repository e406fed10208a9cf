-- Find what this agent should stop.
SELECT id
FROM attempt
WHERE agent = :agent
    AND state = 1
    AND cancel = 1
ORDER BY id
