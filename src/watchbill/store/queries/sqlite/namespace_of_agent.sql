-- Say to which namespace an agent belongs.
SELECT namespace
FROM agent
WHERE id = :agent
