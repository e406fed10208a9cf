-- Read the schedulers and agents of a namespace that are in time and hear no hints: they poll once a second.
-- A supervisor serves all namespaces. It is named if no scheduler runs in its process.
SELECT 'scheduler ' || to_hex(id) AS who
FROM watchbill.scheduler
WHERE namespace = :namespace
    AND until > (SELECT watchbill.at(:now::bigint))
    AND NOT listens
UNION ALL
SELECT 'agent ' || name
FROM watchbill.agent
WHERE namespace = :namespace
    AND state = 1
    AND until > (SELECT watchbill.at(:now::bigint))
    AND NOT witness
UNION ALL
SELECT 'supervisor ' || to_hex(id)
FROM watchbill.supervisor
WHERE until > (SELECT watchbill.at(:now::bigint))
    AND NOT listens
    AND NOT EXISTS (
        SELECT 1
        FROM watchbill.scheduler AS beside
        WHERE beside.info = supervisor.info
            AND beside.until > (SELECT watchbill.at(:now::bigint))
    )
ORDER BY who
