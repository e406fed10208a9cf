-- Lock and read the gates of the dependencies that these queues use: in the order of their names,
-- by code points: so does every process that sorts them itself, whatever the database would.
SELECT (SELECT watchbill.at(:now::bigint)), its.id, gate.namespace, gate.name, gate.breaker
FROM unnest(:queues::integer[]) AS mine (queue)
CROSS JOIN LATERAL (SELECT id, namespace, uses FROM watchbill.queue WHERE id = mine.queue LIMIT 1) AS its
JOIN watchbill.gate ON gate.namespace = its.namespace AND gate.name = 'uses:' || its.uses
WHERE its.uses <> ''
ORDER BY gate.namespace COLLATE "C", gate.name COLLATE "C", its.id
FOR UPDATE OF gate
