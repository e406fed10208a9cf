-- Decide about slots: only as whoever decided has read them, so not when somebody has paused them since; only forward.
UPDATE schedule
SET
    rev = rev + 1, last_slot = :last_slot, wake_at = :wake_at, waiting = :waiting,
    last_run = coalesce(:last_run, last_run)
WHERE namespace = :namespace
    AND name = :name
    AND rev = :rev
    AND last_slot <= :last_slot
