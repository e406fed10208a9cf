-- Name steps that the store has met in a namespace: those of the newest live rows, and those of which something is
-- remembered.
SELECT newest.step
FROM (
    SELECT attempt.step, attempt.shard
    FROM watchbill.attempt
    WHERE attempt.kind <> 1
    ORDER BY attempt.id DESC
    LIMIT :limit::bigint
) AS newest
WHERE newest.shard = ANY (ARRAY(SELECT id FROM watchbill.shard WHERE namespace = :namespace))
UNION
SELECT stat.step
FROM watchbill.stat
WHERE stat.namespace = :namespace
