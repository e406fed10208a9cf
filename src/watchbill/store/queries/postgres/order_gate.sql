-- Pause a gate, or open it again; gives its name if it is there.
UPDATE watchbill.gate
SET paused = :paused
WHERE namespace = :namespace
    AND name = :name
RETURNING name
