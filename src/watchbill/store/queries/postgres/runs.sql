-- Read the newest runs of a namespace, from the index of that order.
SELECT
    num, shard, namespace, id, workflow, version, status, part, losses, priority, wake_at, held,
    paused, watchbill.whole(num, input), created_at, begun_at, ended_at,
    deadline, parent, root, tags, published, early
FROM watchbill.run
WHERE namespace || '' = :namespace
    AND (:workflow::text IS NULL OR workflow = :workflow)
    AND (:statuses::smallint[] IS NULL OR status = ANY (:statuses))
ORDER BY created_at DESC, num DESC
LIMIT :limit::bigint
