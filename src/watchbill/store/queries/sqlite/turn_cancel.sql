-- Ask a running attempt to stop, and have it looked at when it has not; what may still act is looked at when it cannot.
UPDATE attempt
SET cancel = 1, watch_at = CASE WHEN state = 1 THEN ?2 ELSE watch_at END
WHERE id = ?1
    AND (state = 1 OR (state = 3 AND why = 'settle'))
