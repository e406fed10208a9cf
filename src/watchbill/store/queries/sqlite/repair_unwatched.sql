-- Have a row looked at now that, as it was seen, nobody would look at.
UPDATE attempt
SET watch_at = :now
WHERE id = :id
    AND fence = :fence
    AND state = :state
    AND watch_at IS NULL
