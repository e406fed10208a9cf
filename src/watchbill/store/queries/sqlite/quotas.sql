-- Read all quotas of the store.
SELECT namespace, runs, by, reason, at
FROM quota
ORDER BY namespace
