-- Read what some queues ask for.
SELECT id, needs
FROM watchbill.queue
WHERE id = ANY (:queues::integer[])
ORDER BY id
