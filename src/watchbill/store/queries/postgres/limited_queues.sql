-- Say which queues have rows with limits.
SELECT id, limited
FROM watchbill.queue
WHERE id = ANY (:queues::integer[])
