-- Take back that these agents have a session that shows that they are there.
UPDATE watchbill.agent
SET witness = false
WHERE id = ANY (:agents::bigint[])
    AND witness
