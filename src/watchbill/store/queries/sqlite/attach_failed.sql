-- Attach a run that has ended to an incident.
UPDATE failed_run
SET incident = ?2
WHERE run = ?1
    AND incident IS NULL
