-- Read the id of a run.
SELECT id
FROM watchbill.run
WHERE num = :num::bigint
