-- Read what the agents have that are alive and may get work, each with its region.
SELECT region, needs
FROM agent
WHERE state = 1
    AND namespace = :namespace
    AND until > :now
    AND wish = 0
