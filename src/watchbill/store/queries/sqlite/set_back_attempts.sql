-- Shift the next look at attempts that were written while the clock was ahead; due times that are older stay.
UPDATE attempt
SET watch_at = max(:now, watch_at - :by)
WHERE watch_at > :now
    AND max(coalesce(started_at, 0), coalesce(ended_at, 0)) > :now
