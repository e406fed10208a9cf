-- Read how an agent stands: alive or not, until when, what it said, what is wanted of it, and the newest queue it may serve.
SELECT
    state, until, said, wish, needs, suspension, doings,
    coalesce(
        (
            SELECT max(queue.id)
            FROM queue
            WHERE queue.namespace = agent.namespace
                AND queue.region = agent.region
        ),
        0
    ) AS newest_queue
FROM agent
WHERE id = :agent
