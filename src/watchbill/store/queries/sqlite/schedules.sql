-- Read the schedules of a namespace, by name, and whether anybody who attends has their code; yes when nobody does.
SELECT
    namespace, name, coalesce(workflow, name), shard, version, spec, input, rev, last_slot, wake_at, waiting, paused_by, paused_why, paused_at,
    EXISTS (SELECT 1 FROM run WHERE run.num = schedule.last_run AND run.status < 10),
    NOT EXISTS (
        SELECT 1
        FROM scheduler
        WHERE scheduler.namespace = :namespace
            AND scheduler.until > :now
    )
    OR EXISTS (
        SELECT 1
        FROM scheduler
        CROSS JOIN json_each(scheduler.knows) AS known
        WHERE scheduler.namespace = :namespace
            AND scheduler.until > :now
            AND known.value = coalesce(schedule.workflow, schedule.name) || '@' || schedule.version
    ),
    created
FROM schedule
WHERE namespace = :namespace
ORDER BY name
