-- Delete the quota of a namespace, if there is one.
DELETE FROM quota
WHERE namespace = :namespace
