-- Say when the next question is due for its reminder.
SELECT min(remind_at)
FROM attempt
WHERE remind_at > :now
