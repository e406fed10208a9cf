-- Read the runs that have these ids.
SELECT
    num, shard, namespace, id, workflow, version, status, part, losses, priority, wake_at, held,
    paused, watchbill.whole(num, input), created_at, begun_at, ended_at,
    deadline, parent, root, tags, published, early, waits, slot, parent_id, copied, pauses
FROM unnest(:namespaces::text[], :ids::text[]) AS asked (asked_namespace, asked_id)
CROSS JOIN watchbill.run
WHERE namespace = asked_namespace
    AND id = asked_id
