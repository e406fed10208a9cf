-- Read which code the schedulers know that attend now, in all namespaces, and what time it is, also if nobody attends.
SELECT (SELECT watchbill.at(:now::bigint)), namespace, region, knows
FROM (SELECT 1) AS once
LEFT JOIN watchbill.scheduler ON until > (SELECT watchbill.at(:now::bigint))
