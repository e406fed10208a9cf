-- Forget the schedulers of dead processes; all of them when none are named.
DELETE FROM scheduler
WHERE :processes IS NULL
    OR id IN (SELECT value FROM json_each(:processes))
