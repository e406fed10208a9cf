-- End what was taken by a clock that was ahead.
UPDATE supervisor
SET until = :now
WHERE until > :now
    AND until < :forever
