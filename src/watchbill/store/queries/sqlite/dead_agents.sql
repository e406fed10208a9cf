-- Read how agents were called under which something runs though they are gone, and by which evidence they are.
SELECT id, name, state, found
FROM agent
WHERE id IN (SELECT value FROM json_each(:agents))
