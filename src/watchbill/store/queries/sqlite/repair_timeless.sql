-- Give a run that has not begun, and has no time at which it would, the time it is.
UPDATE run
SET wake_at = :now
WHERE num = :id
    AND status = 0
    AND wake_at IS NULL
