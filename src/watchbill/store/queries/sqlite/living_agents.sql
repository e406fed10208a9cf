-- Read what the agents have that are alive, in time and wanted, of all namespaces.
SELECT namespace, region, needs
FROM agent
WHERE state = 1
    AND until > :now
    AND wish = 0
