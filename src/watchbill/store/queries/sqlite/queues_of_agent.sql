-- Find the queues whose needs are all among those that the agent meets.
SELECT id
FROM queue
WHERE namespace = :namespace
    AND region = :region
    AND NOT EXISTS (
        SELECT 1
        FROM json_each(queue.needs) AS need
        WHERE need.value NOT IN (SELECT value FROM json_each(:needs))
    )
ORDER BY id
