-- Read runs whose time has come: per shard the longest overdue, so that no shard hides another.
SELECT
    run.num, run.shard, run.namespace, run.id, run.workflow, run.version, run.status, run.part,
    run.losses, run.priority, run.wake_at, run.held, run.paused, run.input, run.created_at,
    run.begun_at, run.ended_at,
    run.deadline, run.parent, run.root, run.tags, run.published, run.early
FROM json_each(:shards) AS mine
CROSS JOIN run
WHERE run.num IN (
    SELECT num
    FROM run AS due
    WHERE due.shard = mine.value
        AND due.status IN (0, 2)
        AND due.wake_at <= :now
        AND due.paused = 0
        AND due.held IS NULL
        AND due.workflow IN (SELECT value FROM json_each(:known))
    ORDER BY due.wake_at
    LIMIT :share
)
ORDER BY run.wake_at, run.num
