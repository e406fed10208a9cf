-- Forget that a scheduler was there.
DELETE FROM watchbill.scheduler
WHERE id = :owner
