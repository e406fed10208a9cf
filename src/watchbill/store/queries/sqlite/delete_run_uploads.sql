-- Delete the uploads of a run that no turn has taken.
DELETE FROM upload
WHERE run = :run
