-- Delete the quota of attempts of a namespace, if there is one.
DELETE FROM watchbill.gate
WHERE namespace = :namespace
    AND name = 'quota.attempts'
RETURNING namespace
