-- Mark the agents of dead processes lost: what they ran is looked at now.
UPDATE agent
SET state = 2, until = 0, gone_at = :now
WHERE state = 1
    AND id IN (SELECT value FROM json_each(:processes))
