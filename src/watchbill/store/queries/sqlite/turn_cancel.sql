-- Ask a running attempt to stop, and have it looked at when it has not.
UPDATE attempt
SET cancel = 1, watch_at = ?2
WHERE id = ?1
    AND state = 1
