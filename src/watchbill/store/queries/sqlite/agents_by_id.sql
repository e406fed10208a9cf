-- Read how agents are called, how they are, and when they were last heard.
SELECT agent.id, agent.name, agent.state, agent.until, agent.beat_at, agent.suspension, agent.missed_at
FROM json_each(:ids) AS named
CROSS JOIN agent ON agent.id = named.value
