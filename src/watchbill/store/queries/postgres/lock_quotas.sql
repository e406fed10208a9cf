-- Read the quotas of namespaces, and let no other start be counted there until this transaction ends.
SELECT namespace, runs
FROM watchbill.quota
WHERE namespace = ANY (:namespaces::text[])
ORDER BY namespace
FOR UPDATE
