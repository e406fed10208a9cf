-- Read runs by their numbers, unless they have ended.
SELECT
    num, shard, namespace, id, workflow, version, status, part, losses, priority, wake_at, held,
    paused, watchbill.whole(num, input), created_at, begun_at, ended_at,
    deadline, parent, root, tags, published, early
FROM watchbill.run
WHERE num = ANY (:nums::bigint[])
    AND status < :ended::smallint
