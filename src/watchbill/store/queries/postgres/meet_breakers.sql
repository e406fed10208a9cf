-- Make the gates of the dependencies that these queues use, closed, if they are new.
INSERT INTO watchbill.gate (namespace, name, tokens, tokens_at, said)
SELECT used.namespace, used.name, 0, (SELECT watchbill.at(:now::bigint)), 0
FROM (
    SELECT DISTINCT its.namespace, 'uses:' || its.uses AS name
    FROM unnest(:queues::integer[]) AS mine (queue)
    CROSS JOIN LATERAL (SELECT namespace, uses FROM watchbill.queue WHERE id = mine.queue LIMIT 1) AS its
    WHERE its.uses <> ''
) AS used
ORDER BY used.namespace COLLATE "C", used.name COLLATE "C"
ON CONFLICT (namespace, name) DO NOTHING
