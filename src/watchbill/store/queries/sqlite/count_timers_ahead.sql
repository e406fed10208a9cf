-- Count live runs that wait for a time which was computed while the clock was ahead.
SELECT count(*)
FROM run
WHERE status IN (0, 2)
    AND wake_at > :now
    AND coalesce(begun_at, created_at) > :now
