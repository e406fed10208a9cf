-- Read runs that were made long ago, oldest first, from behind a place on.
SELECT num, workflow, version, status, parent IS NULL, created_at, ended_at
FROM run
WHERE namespace = :namespace
    AND (created_at, num) > (:after, :after_num)
    AND created_at <= :before
ORDER BY created_at, num
LIMIT :limit
