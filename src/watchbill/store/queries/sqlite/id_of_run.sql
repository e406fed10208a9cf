-- Read the id of a run.
SELECT id
FROM run
WHERE num = :num
