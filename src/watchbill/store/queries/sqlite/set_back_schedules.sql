-- Let schedules go on with the next slot after now; slots between now and the clock that was ahead come in their time.
UPDATE schedule
SET
    last_slot = min(last_slot, :now),
    wake_at = min(wake_at, :now),
    rev = rev + 1
WHERE last_slot > :now
    OR wake_at > :now
