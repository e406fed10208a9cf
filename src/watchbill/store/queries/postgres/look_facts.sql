-- Read facts by their numbers, in order: as many as fit in so many bytes, and of each run in its share of them.
SELECT id, shard, run, kind, ref, actor, body, at
FROM (
    SELECT shared.*, sum(size) OVER (ORDER BY id) - size AS size_before
    FROM (
        SELECT fact.*,
            octet_length(body) AS size,
            sum(octet_length(body)) OVER (PARTITION BY run ORDER BY id) - octet_length(body) AS of_run_before
        FROM watchbill.fact
        WHERE id = ANY (:ids::bigint[])
    ) AS shared
    WHERE of_run_before < :most_of_run::bigint
) AS told
WHERE size_before < :most::bigint
ORDER BY id
