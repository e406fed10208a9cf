-- Say whether a call still waits for those people for whom it was seen to wait, and belongs to no incident.
SELECT 1
FROM attempt
WHERE id = ?1
    AND fence = ?2
    AND why = ?3
    AND watch_at IS ?4
    AND state = 3
    AND incident IS NULL
