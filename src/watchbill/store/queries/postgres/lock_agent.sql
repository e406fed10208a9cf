-- Wait until no lease of this agent is under way; also one that is out of time must hear what it holds.
SELECT id
FROM watchbill.agent
WHERE id = :agent
    AND state = 1
FOR UPDATE
