-- Read the last words of a run's attempts, in order.
SELECT log.call, log.number, log.fence, log.at, log.body
FROM watchbill.run
CROSS JOIN LATERAL (
    SELECT call, number, fence, at, body
    FROM watchbill.log
    WHERE log.run = run.num
) AS log
WHERE run.namespace = :namespace
    AND run.id = :id
ORDER BY log.at, log.call, log.fence
