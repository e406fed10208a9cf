-- Count the runs of a namespace that were made since a time, by their state; of very many the newest.
SELECT made.status, count(*)
FROM (
    SELECT status
    FROM watchbill.run
    WHERE namespace || '' = :namespace
        AND created_at >= :since::bigint
    ORDER BY created_at DESC, num DESC
    LIMIT :limit::bigint
) AS made
GROUP BY made.status
