-- Read the quotas of namespaces.
SELECT namespace, runs
FROM watchbill.quota
WHERE namespace = ANY (:namespaces::text[])
