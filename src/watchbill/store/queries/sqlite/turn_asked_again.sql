-- Give the people who decide about a parked row their time anew: what one of them wanted did not fit.
UPDATE attempt
SET watch_at = ?4 + ?2, remind_at = ?4 + ?3
WHERE id = ?1
    AND state = 3
    AND kind = 0
