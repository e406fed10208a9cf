-- Attach a call that waits for a person to an incident.
UPDATE attempt
SET incident = ?2
WHERE id = ?1
    AND state = 3
    AND incident IS NULL
