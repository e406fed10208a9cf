-- Delete the quota of attempts of a namespace, if there is one.
DELETE FROM gate
WHERE namespace = :namespace
    AND name = 'quota.attempts'
