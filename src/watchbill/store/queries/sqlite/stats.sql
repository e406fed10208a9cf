-- Read the stats of a namespace to which something was added since a time.
SELECT step, rung, sketch
FROM stat
WHERE namespace = :namespace
    AND at >= :since
ORDER BY step, rung
