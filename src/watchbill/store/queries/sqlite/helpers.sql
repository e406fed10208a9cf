-- Read the agents of a namespace that may get work, or would if they were not suspended or quarantined (then by name): what they
-- have, and what each attempt that they run asks for, of many some; not of those in quarantine, which have room for nothing.
SELECT
    agent.id, agent.region, agent.needs, agent.slots, agent.suspension IS NOT NULL,
    CASE WHEN agent.wish = 2 THEN agent.name END, queue.needs
FROM agent
LEFT JOIN attempt ON attempt.agent = agent.id AND attempt.state = 1 AND agent.wish = 0
LEFT JOIN queue ON queue.id = attempt.queue
WHERE agent.state = 1
    AND agent.until > :now
    AND agent.wish IN (0, 2)
    AND agent.namespace = :namespace
LIMIT :most
