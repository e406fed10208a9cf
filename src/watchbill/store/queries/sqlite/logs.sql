-- Read the last words of a run's attempts, in order.
SELECT log.call, log.number, log.fence, log.at, log.body
FROM run
CROSS JOIN log ON log.run = run.num
WHERE run.namespace = :namespace
    AND run.id = :id
ORDER BY log.at, log.call, log.fence
