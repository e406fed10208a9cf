-- Name steps that the store has met in a namespace: those of the newest live rows, and those of which something is
-- remembered.
SELECT newest.step
FROM (
    SELECT attempt.step, attempt.shard
    FROM attempt
    WHERE attempt.id > 0
        AND attempt.kind <> 1
    ORDER BY attempt.id DESC
    LIMIT :limit
) AS newest
WHERE newest.shard IN (SELECT id FROM shard WHERE namespace = :namespace)
UNION
SELECT stat.step
FROM stat
WHERE stat.namespace = :namespace
