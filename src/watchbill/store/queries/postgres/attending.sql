-- Read the schedulers that attend a namespace now, by id.
SELECT id, knows, info
FROM watchbill.scheduler
WHERE namespace = :namespace
    AND until > (SELECT watchbill.at(:now::bigint))
ORDER BY id
