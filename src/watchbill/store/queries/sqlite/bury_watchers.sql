-- Forget the supervisors of dead processes.
DELETE FROM supervisor
WHERE id IN (SELECT value FROM json_each(:processes))
