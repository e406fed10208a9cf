-- Delete all rows of this table that belong to these runs.
DELETE FROM upload
WHERE run IN (SELECT value FROM json_each(:runs))
