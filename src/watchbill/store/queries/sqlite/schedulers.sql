-- Read which code the schedulers know that attend now, in all namespaces.
SELECT namespace, region, knows
FROM scheduler
WHERE until > :now
