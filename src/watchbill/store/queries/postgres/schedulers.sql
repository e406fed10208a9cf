-- Read which code the schedulers know that attend now, in all namespaces.
SELECT namespace, region, knows
FROM watchbill.scheduler
WHERE until > (SELECT watchbill.at(:now::bigint))
