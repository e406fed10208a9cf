-- Read the questions whose reminder is due.
SELECT id, remind_at, run_id, call
FROM attempt
WHERE remind_at <= :now
ORDER BY remind_at
LIMIT :limit
