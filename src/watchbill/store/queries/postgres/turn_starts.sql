-- Insert runs that this turn starts; one whose id is there already was started by this very call before.
-- A number that belongs to another run fails the turn.
INSERT INTO watchbill.run (
    num, shard, namespace, id, workflow, version, input, created_at, wake_at, priority, deadline, tags, parent, root,
    parent_id
)
SELECT
    num, shard, namespace, id, workflow, version, input, now, coalesce(at, now) + delay, priority,
    least(deadline, now + deadline_in), string_to_array(tags, chr(31)), parent, coalesce(root, num),
    parent_id
FROM unnest(
    :start_nums::bigint[], :start_shards::integer[], :start_namespaces::text[], :start_ids::text[],
    :start_workflows::text[], :start_versions::integer[], :start_inputs::bytea[], :start_priorities::integer[],
    :start_ats::bigint[], :start_delays::bigint[], :start_deadlines::bigint[], :start_deadline_ins::bigint[],
    :start_tags::text[], :start_parents::bigint[], :start_roots::bigint[],
    :start_parent_ids::text[]
) AS new (
    num, shard, namespace, id, workflow, version, input, priority, at, delay, deadline, deadline_in, tags, parent, root,
    parent_id
)
CROSS JOIN mine
WHERE whole
ON CONFLICT (namespace, id) DO NOTHING
RETURNING num
