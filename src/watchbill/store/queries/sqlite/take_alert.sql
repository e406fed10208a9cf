-- Take an alert for a while, to send it.
UPDATE alert
SET tries = tries + 1, due_at = :until
WHERE incident = :incident
    AND kind = :kind
    AND route = :route
