-- Delete all rows of this table that belong to these runs.
DELETE FROM log
WHERE run IN (SELECT value FROM json_each(:runs))
