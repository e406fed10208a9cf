-- Of some agents, find those who have left in peace or never were there.
SELECT value
FROM json_each(:agents)
WHERE NOT EXISTS (
    SELECT 1
    FROM agent
    WHERE agent.id = value
        AND agent.state IN (1, 2)
)
