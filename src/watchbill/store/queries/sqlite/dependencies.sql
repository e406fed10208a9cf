-- Read which dependencies the queues of a namespace use, and how many run and wait there; those who wait up to a limit.
SELECT
    queue.uses,
    sum((SELECT count(*) FROM attempt WHERE attempt.state = 1 AND attempt.agent IS NOT NULL AND attempt.queue = queue.id)),
    sum((
        SELECT count(*)
        FROM (
            SELECT 1
            FROM attempt
            WHERE attempt.queue = queue.id
                AND attempt.state = 0
                AND attempt.held = 0
            LIMIT :most
        )
    ))
FROM queue
WHERE queue.namespace = :namespace
    AND queue.uses <> ''
GROUP BY queue.uses
ORDER BY queue.uses
