-- Delete the quota of a namespace, if there is one.
DELETE FROM watchbill.quota
WHERE namespace = :namespace
RETURNING namespace
