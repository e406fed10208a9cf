-- Read runs by their numbers, in the order asked, unless they have ended: as many as fit in so many bytes, with all
-- their large bodies, their rows and what they have been told. The first one always does.
SELECT
    num, shard, namespace, id, workflow, version, status, part, losses, priority, wake_at, held,
    paused, watchbill.whole(num, input), created_at, begun_at, ended_at,
    deadline, parent, root, tags, published, early, waits, slot, parent_id, copied, pauses
FROM (
    SELECT sized.*, sum(size) OVER (ORDER BY place) - size AS size_before
    FROM (
        SELECT run.*, wanted.place,
            octet_length(run.input)
            + coalesce((SELECT sum(coalesce(blob.size, octet_length(blob.body))) FROM watchbill.blob WHERE blob.run = run.num), 0)
            + coalesce((
                SELECT sum(octet_length(attempt.args) + coalesce(octet_length(attempt.result), 0))
                FROM watchbill.attempt WHERE attempt.run = run.num
            ), 0)
            + coalesce((SELECT sum(octet_length(fact.body)) FROM watchbill.fact WHERE fact.run = run.num), 0) AS size
        FROM unnest(:nums::bigint[]) WITH ORDINALITY AS wanted (num, place)
        JOIN watchbill.run ON run.num = wanted.num
        WHERE run.status < :ended::smallint
    ) AS sized
) AS wanted
WHERE size_before = 0 OR size_before + size <= :most::bigint
ORDER BY place
