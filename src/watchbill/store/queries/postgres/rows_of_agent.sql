-- Find what an agent still runs.
SELECT id, fence
FROM watchbill.attempt
WHERE agent = :agent
    AND state = 1
ORDER BY id
