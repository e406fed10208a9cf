-- Read schedules that were found due.
SELECT
    namespace, name, coalesce(workflow, name), shard, version, spec, input, rev, last_slot, wake_at, waiting, paused_by, paused_why, paused_at,
    coalesce((SELECT run.status < 10 FROM watchbill.run WHERE run.num = schedule.last_run), false),
    true,
    created
FROM watchbill.schedule
WHERE id = ANY (:ids::bigint[])
ORDER BY wake_at, id
