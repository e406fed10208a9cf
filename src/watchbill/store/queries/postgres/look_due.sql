-- Read runs that were found due, unless somebody drives them meanwhile: as many as fit in so many bytes, the first ones.
-- Mostly all of them fit: then no run is compared with the others.
SELECT
    num, shard, namespace, id, workflow, version, status, part, losses, priority, wake_at, held,
    paused, watchbill.whole(num, input), created_at, begun_at, ended_at,
    deadline, parent, root, tags, published, early, waits, slot, parent_id, copied, pauses
FROM watchbill.run
WHERE num = ANY (:nums::bigint[])
    AND status = ANY (:woken_by_time::smallint[])
    AND (
        (
            SELECT
                coalesce(sum(octet_length(input)), 0) <= :most::bigint
                AND NOT coalesce(bool_or(octet_length(input) < 22 AND input < '\x01'), false) -- a reference to a blob
            FROM watchbill.run
            WHERE num = ANY (:nums::bigint[])
                AND status = ANY (:woken_by_time::smallint[])
        )
        OR num IN (
            SELECT due.num
            FROM (
                SELECT sized.*, sum(size) OVER (ORDER BY wake_at, num) - size AS size_before
                FROM (
                    SELECT run.*,
                        CASE
                            WHEN octet_length(run.input) < 22 AND substr(run.input, 1, 1) = '\x00' THEN (
                                SELECT coalesce(blob.size, octet_length(blob.body))
                                FROM watchbill.blob
                                WHERE blob.run = run.num
                                    AND blob.n = watchbill.referred(run.input)
                            )
                            ELSE octet_length(run.input)
                        END AS size
                    FROM watchbill.run
                    WHERE num = ANY (:nums::bigint[])
                        AND status = ANY (:woken_by_time::smallint[])
                ) AS sized
            ) AS due
            WHERE size_before < :most::bigint
        )
    )
ORDER BY wake_at, num
