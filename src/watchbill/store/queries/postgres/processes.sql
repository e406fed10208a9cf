-- Read everybody who may hold something, each once, with the identity of its process.
SELECT DISTINCT ON (id) id, info
FROM (
    SELECT id, info
    FROM watchbill.agent
    WHERE state = 1
    UNION ALL
    SELECT id, info
    FROM watchbill.scheduler
    UNION ALL
    SELECT id, info
    FROM watchbill.supervisor
) AS process
ORDER BY id
