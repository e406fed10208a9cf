-- Read when the row is due that supervisors look at next.
SELECT min(watch_at)
FROM attempt
WHERE watch_at IS NOT NULL
