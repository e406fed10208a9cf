-- Read the quota of attempts of a namespace.
SELECT at_once
FROM gate
WHERE namespace = :namespace
    AND name = 'quota.attempts'
