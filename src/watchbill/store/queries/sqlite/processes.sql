-- Read everybody who may hold something, each once, with the identity of its process.
SELECT id, info
FROM agent
WHERE state = 1
UNION ALL
SELECT id, info
FROM scheduler
WHERE NOT EXISTS (
    SELECT 1
    FROM agent
    WHERE agent.id = scheduler.id
        AND agent.state = 1
)
UNION ALL
SELECT id, info
FROM supervisor
WHERE NOT EXISTS (
    SELECT 1
    FROM agent
    WHERE agent.id = supervisor.id
        AND agent.state = 1
)
    AND NOT EXISTS (
        SELECT 1
        FROM scheduler
        WHERE scheduler.id = supervisor.id
    )
ORDER BY id
