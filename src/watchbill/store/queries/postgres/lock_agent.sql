-- Wait until no lease of this agent is under way.
SELECT id
FROM watchbill.agent
WHERE id = :agent
    AND state = 1
    AND until > (SELECT watchbill.at(:now::bigint))
FOR UPDATE
