-- Forget that a scheduler was there; gives it, if it was.
DELETE FROM watchbill.scheduler
WHERE id = :owner
RETURNING id
