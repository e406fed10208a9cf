-- Let a run that has ended belong to no incident: somebody has gone on with it, or leaves it as it is, or it is deleted.
DELETE FROM failed_run
WHERE run = :run
