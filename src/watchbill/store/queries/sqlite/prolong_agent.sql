-- Prolong an agent that is alive, and keep what it says of itself.
UPDATE agent
SET until = :until, beat_at = :now, said = :said
WHERE id = :agent
    AND state = 1
