-- Read the ids that begin so, in order.
SELECT id
FROM run
WHERE namespace = :namespace
    AND id >= :beginning
    AND id < :beyond
ORDER BY id
LIMIT :limit
