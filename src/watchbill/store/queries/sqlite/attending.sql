-- Read the schedulers that attend a namespace now, by id.
SELECT id, knows, info
FROM scheduler
WHERE namespace = :namespace
    AND until > :now
ORDER BY id
