-- Read one stat.
SELECT sketch
FROM watchbill.stat
WHERE namespace = :namespace
    AND step = :step
    AND rung = :rung::integer
