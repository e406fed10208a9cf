-- Read all quotas of the store.
SELECT namespace, runs, by, reason, at
FROM watchbill.quota
ORDER BY namespace
