-- Read the quota of a namespace.
SELECT runs
FROM quota
WHERE namespace = :namespace
