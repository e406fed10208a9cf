-- Read some queues.
SELECT queue.id, needs, uses, limited
FROM json_each(:queues) AS mine
CROSS JOIN queue ON queue.id = mine.value
