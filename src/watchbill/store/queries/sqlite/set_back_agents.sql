-- End what was taken by a clock that was ahead.
UPDATE agent
SET until = :now
WHERE until > :now
    AND until < :forever
