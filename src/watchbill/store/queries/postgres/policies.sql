-- Read what was ordered about the policies of steps in a namespace.
SELECT step, revision, by, reason, at, body
FROM watchbill.policy
WHERE namespace = :namespace
ORDER BY step
