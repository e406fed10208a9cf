-- Read one run by its id.
SELECT
    num, shard, namespace, id, workflow, version, status, part, losses, priority, wake_at, held,
    paused, input, created_at, begun_at, ended_at,
    deadline, parent, root, tags, published, early, waits, slot, parent_id, copied, pauses
FROM run
WHERE namespace = :namespace
    AND id = :id
