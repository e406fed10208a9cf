-- Forget that a supervisor stood watch.
DELETE FROM supervisor
WHERE id = :id
