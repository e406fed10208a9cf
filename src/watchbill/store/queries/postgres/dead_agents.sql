-- Read how agents were called under which something runs though they are gone, and by which evidence they are.
SELECT id, name, state, found
FROM watchbill.agent
WHERE id = ANY (:agents::bigint[])
