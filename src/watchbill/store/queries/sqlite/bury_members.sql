-- Forget the schedulers of dead processes.
DELETE FROM scheduler
WHERE id IN (SELECT value FROM json_each(:processes))
