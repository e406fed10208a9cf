-- Say when the next row is due, or the lease of an agent at work ends.
WITH RECURSIVE holder (agent) AS (
    SELECT (SELECT min(agent) FROM attempt WHERE state = 1)
    UNION ALL
    SELECT (SELECT min(agent) FROM attempt WHERE state = 1 AND agent > holder.agent)
    FROM holder
    WHERE holder.agent IS NOT NULL
)
SELECT min(at)
FROM (
    SELECT min(watch_at) AS at
    FROM attempt
    WHERE watch_at > :now
    UNION ALL
    SELECT min(agent.until)
    FROM holder
    CROSS JOIN agent ON agent.id = holder.agent
    WHERE agent.state = 1
        AND agent.until > :now
        AND agent.until < :forever
)
