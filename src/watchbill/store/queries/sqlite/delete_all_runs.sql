-- Delete runs that have ended.
DELETE FROM run
WHERE num IN (SELECT value FROM json_each(:runs))
    AND status >= 10
