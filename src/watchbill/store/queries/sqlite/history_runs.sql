-- Count the runs of a namespace that were made since a time, by their state; of very many the newest.
SELECT status, count(*)
FROM (
    SELECT status
    FROM run INDEXED BY run_list
    WHERE namespace = :namespace
        AND created_at >= :since
    ORDER BY created_at DESC, num DESC
    LIMIT :limit
)
GROUP BY status
