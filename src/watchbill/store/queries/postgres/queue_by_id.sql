-- Say where a queue is, and of which dependency.
SELECT namespace, region, uses
FROM watchbill.queue
WHERE id = :id
