-- Resolve an incident that is open.
UPDATE incident
SET state = 1, resolved_at = :now
WHERE id = :id
    AND state = 0
