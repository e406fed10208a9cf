-- Read which limits, steps and workflows are paused; mostly none.
SELECT namespace, name
FROM gate
WHERE (paused OR state <> 0)
    AND paused
    AND (name LIKE 'limit:%' OR name LIKE 'step:%' OR name LIKE 'workflow:%')
