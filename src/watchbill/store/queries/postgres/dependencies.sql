-- Read which dependencies the queues of a namespace use, and how many run and wait there; those who wait up to a limit.
WITH at_work AS MATERIALIZED (
    SELECT queue, count(*) AS running
    FROM watchbill.attempt
    WHERE state = 1
        AND agent IS NOT NULL
    GROUP BY queue
)
SELECT
    queue.uses,
    sum(coalesce((SELECT at_work.running FROM at_work WHERE at_work.queue = queue.id), 0))::bigint,
    sum((
        SELECT count(*)
        FROM (
            SELECT 1
            FROM watchbill.attempt
            WHERE attempt.queue = queue.id
                AND attempt.state = 0
                AND NOT attempt.held
            LIMIT :most::bigint
        ) AS ready
    ))::bigint
FROM watchbill.queue
WHERE queue.namespace = :namespace
    AND queue.uses <> ''
GROUP BY queue.uses
ORDER BY queue.uses
