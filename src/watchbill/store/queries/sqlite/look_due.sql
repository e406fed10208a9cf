-- Read runs whose time has come: per shard the longest overdue, so that no shard hides another. Runs of workflows that
-- somebody has paused do not begin.
SELECT
    run.num, run.shard, run.namespace, run.id, run.workflow, run.version, run.status, run.part,
    run.losses, run.priority, run.wake_at, run.held, run.paused, run.input, run.created_at,
    run.begun_at, run.ended_at,
    run.deadline, run.parent, run.root, run.tags, run.published, run.early, run.waits,
    run.slot, run.parent_id, run.copied, run.pauses
FROM json_each(:shards) AS mine
CROSS JOIN run
WHERE run.num IN (
    SELECT num
    FROM run AS due
    WHERE due.shard = mine.value
        AND due.status IN (0, 2)
        AND due.wake_at <= :now
        AND (due.paused = 0 OR due.status = 2)
        AND due.held IS NULL
        AND due.workflow || '@' || due.version IN (SELECT value FROM json_each(:known))
        AND (due.status = 2 OR 'workflow:' || due.workflow NOT IN (SELECT value FROM json_each(:stopped)))
    ORDER BY due.wake_at
    LIMIT :share
)
ORDER BY run.wake_at, run.num
