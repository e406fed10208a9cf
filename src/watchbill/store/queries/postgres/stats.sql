-- Read the stats of a namespace to which something was added since a time, and what time it is.
SELECT (SELECT watchbill.at(:now::bigint)), stat.step, stat.rung, stat.sketch
FROM (SELECT 1) AS once
LEFT JOIN watchbill.stat ON stat.namespace = :namespace AND stat.at >= :since::bigint
ORDER BY stat.step, stat.rung
