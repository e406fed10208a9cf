-- Read the newest runs of a namespace, from the index of that order.
SELECT
    num, shard, namespace, id, workflow, version, status, part, losses, priority, wake_at, held,
    paused, input, created_at, begun_at, ended_at,
    deadline, parent, root, tags, published, early
FROM run
WHERE namespace = :namespace
    AND (:workflow IS NULL OR workflow = :workflow)
    AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
ORDER BY created_at DESC, num DESC
LIMIT :limit
