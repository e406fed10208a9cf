-- Mark an agent as gone in peace; one that was lost stays lost.
UPDATE agent
SET state = 3, until = :now, gone_at = :now
WHERE id = :agent
    AND state = 1
