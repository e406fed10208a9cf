-- Read all queues of a namespace and region.
SELECT id, needs, uses, limited
FROM watchbill.queue
WHERE namespace = :namespace
    AND region = :region
ORDER BY id
