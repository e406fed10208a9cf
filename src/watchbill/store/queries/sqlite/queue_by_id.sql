-- Say where a queue is, and of which dependency.
SELECT namespace, region, uses
FROM queue
WHERE id = :id
