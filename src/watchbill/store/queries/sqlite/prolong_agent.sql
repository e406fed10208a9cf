-- Prolong an agent that is alive, and keep what it says of itself and of what it did.
UPDATE agent
SET until = :until, beat_at = :now, said = :said, doings = :doings
WHERE id = :agent
    AND state = 1
