-- Name the steps that the store has met in a namespace: those of live rows, and those of which something is remembered.
SELECT attempt.step
FROM attempt
WHERE attempt.shard IN (SELECT id FROM shard WHERE namespace = :namespace)
    AND attempt.kind <> 1
UNION
SELECT stat.step
FROM stat
WHERE stat.namespace = :namespace
