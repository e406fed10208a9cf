-- Read the runs of trees that have ended, by their roots.
SELECT num
FROM run
WHERE num IN (SELECT value FROM json_each(:roots))
    AND parent IS NULL
    AND status >= 10
UNION ALL
SELECT run.num
FROM json_each(:roots) AS wanted
CROSS JOIN run ON run.root = wanted.value AND run.parent IS NOT NULL
