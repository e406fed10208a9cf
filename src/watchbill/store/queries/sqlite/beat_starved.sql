-- Find what this agent runs and has said to be starved.
SELECT id, fence
FROM attempt
WHERE agent = :agent
    AND state = 1
    AND symptom = 'starved'
ORDER BY id
