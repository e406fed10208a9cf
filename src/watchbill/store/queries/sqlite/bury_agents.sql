-- Mark the agents of a dead process lost: what they ran is looked at now, not when their time is up.
UPDATE agent
SET state = 2, until = :now
WHERE state = 1
