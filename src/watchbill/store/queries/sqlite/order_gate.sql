-- Pause a gate, or open it again.
UPDATE gate
SET paused = :paused
WHERE namespace = :namespace
    AND name = :name
