-- Name the steps that the store has met in a namespace: those of live rows, and those of which something is remembered.
SELECT attempt.step
FROM watchbill.attempt
WHERE attempt.shard = ANY (ARRAY(SELECT id FROM watchbill.shard WHERE namespace = :namespace))
    AND attempt.kind <> 1
UNION
SELECT stat.step
FROM watchbill.stat
WHERE stat.namespace = :namespace
