-- Give every agent and scheduler that has neither left nor been buried, each id once.
SELECT DISTINCT ON (id) id, info
FROM (
    SELECT id, info
    FROM watchbill.agent
    WHERE state = 1
        AND until > 0
    UNION ALL
    SELECT id, info
    FROM watchbill.scheduler
    WHERE until > 0
) AS process
ORDER BY id
