-- Read runs of a namespace, newest first, from behind a place on, by the index of that order.
SELECT
    num, shard, namespace, id, workflow, version, status, part, losses, priority, wake_at, held,
    paused, watchbill.whole(num, input), created_at, begun_at, ended_at,
    deadline, parent, root, tags, published, early, waits, slot, parent_id, copied, pauses
FROM watchbill.run
WHERE namespace || '' = :namespace
    AND (created_at, num) < (:before::bigint, :before_num::bigint)
    AND (:workflow::text IS NULL OR workflow = :workflow)
    AND (:statuses::smallint[] IS NULL OR status = ANY (:statuses))
    AND (:tags::text[] IS NULL OR tags @> :tags)
ORDER BY created_at DESC, num DESC
LIMIT :limit::bigint
