-- Insert the runs of slots that were decided just now; one whose id is there has been started before.
-- A number that belongs to another run fails the turn.
INSERT INTO watchbill.run (
    num, shard, namespace, id, workflow, version, input, created_at, wake_at, priority, deadline, tags, parent, root,
    slot
)
SELECT
    num, shard, new.namespace, id, workflow, version, input, now, coalesce(at, now) + delay, priority,
    least(deadline, now + deadline_in), string_to_array(tags, chr(31)), parent, coalesce(root, num),
    slot
FROM unnest(
    :slot_nums::bigint[], :slot_shards::integer[], :slot_namespaces::text[], :slot_ids::text[],
    :slot_workflows::text[], :slot_versions::integer[], :slot_inputs::bytea[], :slot_priorities::integer[],
    :slot_ats::bigint[], :slot_delays::bigint[], :slot_deadlines::bigint[], :slot_deadline_ins::bigint[],
    :slot_tags::text[], :slot_parents::bigint[], :slot_roots::bigint[],
    :slot_slots::bigint[],
    :slot_schedules::text[]
) AS new (
    num, shard, namespace, id, workflow, version, input, priority, at, delay, deadline, deadline_in, tags, parent, root,
    slot, schedule
)
CROSS JOIN mine
CROSS JOIN schedules
WHERE schedules.namespace = new.namespace
    AND schedules.name = new.schedule
ON CONFLICT (namespace, id) DO NOTHING
RETURNING num
