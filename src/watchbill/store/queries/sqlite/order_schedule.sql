-- Do what a person wants of a schedule, if it is still as they have read it; it is looked at anew, at once.
UPDATE schedule
SET
    rev = rev + 1, waiting = :waiting, paused_by = :paused_by, paused_why = :paused_why,
    paused_at = CASE WHEN :paused_by IS NOT NULL THEN coalesce(paused_at, :now) END,
    wake_at = min(wake_at, :now)
WHERE namespace = :namespace
    AND name = :name
    AND rev = :rev
