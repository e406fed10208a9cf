-- Say when the next alert is due, by these routes.
SELECT min(due_at)
FROM alert
WHERE state = 0
    AND route IN (SELECT value FROM json_each(:routes))
    AND due_at > :now
