-- Read the schedules of a namespace, by name, and whether anybody who attends has their code; yes when nobody does.
SELECT
    namespace, name, coalesce(workflow, name), shard, version, spec, input, rev, last_slot, wake_at, waiting, paused_by, paused_why, paused_at,
    coalesce((SELECT run.status < 10 FROM watchbill.run WHERE run.num = schedule.last_run), false),
    (
        SELECT coalesce(bool_or(coalesce(schedule.workflow, schedule.name) || '@' || schedule.version = ANY (knows)), true)
        FROM watchbill.scheduler
        WHERE scheduler.namespace = :namespace
            AND until > (SELECT watchbill.at(:now::bigint))
    ),
    created
FROM watchbill.schedule
WHERE namespace = :namespace
ORDER BY name COLLATE "C"
