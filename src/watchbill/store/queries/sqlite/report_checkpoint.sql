-- Keep the newest checkpoint of a running attempt, for the attempts after it.
UPDATE attempt
SET checkpoint = ?3
WHERE id = ?1
    AND fence = ?2
    AND state = 1
