-- Read what the agents have that are alive and may get work, each with its region.
SELECT region, needs
FROM watchbill.agent
WHERE state = 1
    AND namespace = :namespace
    AND until > (SELECT watchbill.at(:now::bigint))
    AND wish = 0
