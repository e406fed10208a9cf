-- Read the agents of a namespace that may get work, or would if they were not suspended: what they have, and what each attempt
-- that they run asks for, of many some.
SELECT agent.id, agent.region, agent.needs, agent.slots, agent.suspension IS NOT NULL, queue.needs
FROM agent
LEFT JOIN attempt ON attempt.agent = agent.id AND attempt.state = 1
LEFT JOIN queue ON queue.id = attempt.queue
WHERE agent.state = 1
    AND agent.until > :now
    AND agent.wish = 0
    AND agent.namespace = :namespace
LIMIT :most
