-- Delete a schedule that was created at run time, or has ended, if it is as it was read.
DELETE FROM schedule
WHERE namespace = :namespace
    AND name = :name
    AND rev = :rev
    AND (created OR wake_at IS NULL)
