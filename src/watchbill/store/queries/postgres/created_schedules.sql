-- Find which of these names schedules have that were created at run time.
SELECT name
FROM watchbill.schedule
WHERE namespace = :namespace
    AND name = ANY (:names::text[])
    AND created
ORDER BY name COLLATE "C"
