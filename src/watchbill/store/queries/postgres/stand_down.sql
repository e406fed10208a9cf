-- Forget that a supervisor stood watch; gives it, if it did.
DELETE FROM watchbill.supervisor
WHERE id = :id::bigint
RETURNING id
