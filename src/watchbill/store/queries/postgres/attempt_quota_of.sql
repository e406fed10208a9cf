-- Read the quota of attempts of a namespace.
SELECT at_once
FROM watchbill.gate
WHERE namespace = :namespace
    AND name = 'quota.attempts'
