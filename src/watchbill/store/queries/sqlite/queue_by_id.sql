-- Say where a queue is.
SELECT namespace, region
FROM queue
WHERE id = :id
