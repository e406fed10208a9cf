-- Read schedules with a slot that is due, or one that waits and need wait no longer; not those that are paused.
SELECT
    schedule.namespace, schedule.name, coalesce(schedule.workflow, schedule.name), schedule.shard, schedule.version,
    schedule.spec, schedule.input, schedule.rev, schedule.last_slot, schedule.wake_at, schedule.waiting,
    schedule.paused_by, schedule.paused_why, schedule.paused_at,
    EXISTS (SELECT 1 FROM run WHERE run.num = schedule.last_run AND run.status < 10),
    1,
    schedule.created
FROM json_each(:shards) AS mine
CROSS JOIN schedule
WHERE schedule.id IN (
    SELECT id
    FROM schedule AS due
    WHERE due.shard = mine.value
        AND due.wake_at <= :now
        AND due.paused_by IS NULL
        AND coalesce(due.workflow, due.name) IN (SELECT value FROM json_each(:known))
    UNION
    SELECT id
    FROM schedule AS ready
    WHERE ready.shard = mine.value
        AND ready.waiting IS NOT NULL
        AND ready.wake_at IS NOT NULL
        AND ready.paused_by IS NULL
        AND coalesce(ready.workflow, ready.name) IN (SELECT value FROM json_each(:known))
        AND NOT EXISTS (SELECT 1 FROM run WHERE run.num = ready.last_run AND run.status < 10)
)
ORDER BY schedule.wake_at, schedule.id
LIMIT :limit
