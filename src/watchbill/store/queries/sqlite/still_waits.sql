-- Say whether a call still waits for a person as it was seen, and belongs to no incident.
SELECT 1
FROM attempt
WHERE id = ?1
    AND fence = ?2
    AND why = ?3
    AND state = 3
    AND incident IS NULL
