-- Read the quotas of attempts of all namespaces.
SELECT namespace, at_once, paused_by, paused_why, paused_at
FROM watchbill.gate
WHERE (paused OR state <> 0)
    AND name || '' = 'quota.attempts'
ORDER BY namespace
