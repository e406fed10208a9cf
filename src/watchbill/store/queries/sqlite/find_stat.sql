-- Read one stat.
SELECT sketch
FROM stat
WHERE namespace = :namespace
    AND step = :step
    AND rung = :rung
