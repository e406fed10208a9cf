-- Read runs of a namespace, newest first, from behind a place on, by the index of that order.
SELECT
    num, shard, namespace, id, workflow, version, status, part, losses, priority, wake_at, held,
    paused, input, created_at, begun_at, ended_at,
    deadline, parent, root, tags, published, early, waits, slot, parent_id, copied, pauses
FROM run
WHERE namespace = :namespace
    AND (created_at, num) < (:before, :before_num)
    AND (:workflow IS NULL OR workflow = :workflow)
    AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
    AND (
        :tags IS NULL
        OR NOT EXISTS (
            SELECT 1
            FROM json_each(:tags) AS wanted
            WHERE instr(char(31) || coalesce(tags, '') || char(31), char(31) || wanted.value || char(31)) = 0
        )
    )
ORDER BY created_at DESC, num DESC
LIMIT :limit
