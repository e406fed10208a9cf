-- Keep the newest progress of a running attempt; only an increase moves its time.
UPDATE attempt
SET progress = ?3, progress_at = CASE WHEN ?4 THEN ?5 ELSE progress_at END
WHERE id = ?1
    AND fence = ?2
    AND state = 1
