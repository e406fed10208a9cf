-- Attach a run that nothing moves to an incident.
UPDATE run
SET incident = ?2
WHERE num = ?1
    AND incident IS NULL
