-- Attach a call that waits for a person to an incident; and the time that people have begins, unless one has decided: it
-- never ends before those who had an attempt in doubt can no longer act, as it was judged.
UPDATE attempt
SET
    incident = ?2,
    watch_at = CASE WHEN watch_at >= ?5 THEN max(coalesce(?4 + ?3, 0), watch_at - ?5) ELSE watch_at END,
    remind_at = CASE WHEN watch_at >= ?5 THEN ?4 + (max(coalesce(?4 + ?3, 0), watch_at - ?5) - ?4) / 2 ELSE remind_at END
WHERE id = ?1
    AND state = 3
    AND incident IS NULL
