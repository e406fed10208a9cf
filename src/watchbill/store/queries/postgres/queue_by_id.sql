-- Say where a queue is.
SELECT namespace, region
FROM watchbill.queue
WHERE id = :id
