-- Prolong an agent that is alive.
UPDATE agent
SET until = :until
WHERE id = :agent
    AND state = 1
