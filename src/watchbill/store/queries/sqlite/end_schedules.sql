-- Let those end whose workflows are there and have no schedule any more.
UPDATE schedule
SET wake_at = NULL, rev = rev + 1
WHERE namespace = :namespace
    AND name IN (SELECT value FROM json_each(:without))
    AND wake_at IS NOT NULL
    AND NOT created
