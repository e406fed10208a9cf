-- Read what the agents have that are alive, in time and wanted, of all namespaces.
-- Also those that are suspended: what only they can do they go on with.
SELECT namespace, region, needs
FROM agent
WHERE state = 1
    AND until > :now
    AND wish = 0
