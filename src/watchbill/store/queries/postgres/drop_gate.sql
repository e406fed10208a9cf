-- Forget a name that is no longer paused.
DELETE FROM watchbill.gate
WHERE namespace = :namespace
    AND name = :name
    AND NOT paused
    AND state = 0
