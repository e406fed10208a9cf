-- Find which of these names schedules have that were created at run time.
SELECT name
FROM schedule
WHERE namespace = :namespace
    AND name IN (SELECT value FROM json_each(:names))
    AND created
ORDER BY name
