-- Give the people who decide about a parked row their time anew: what one of them wanted did not fit. It begins now, or
-- when they are told. Not of what may still act: that is nobody's to decide yet.
UPDATE attempt
SET
    watch_at = ?3 + ?2 + CASE WHEN incident IS NULL THEN ?4 ELSE 0 END,
    remind_at = CASE WHEN incident IS NOT NULL THEN ?3 + ?2 / 2 END
WHERE id = ?1
    AND state = 3
    AND kind = 0
    AND why IS NOT 'settle'
