-- Read some runs of each shard that are due and not begun or woken, with the code they need, the longest overdue first.
SELECT due.shard, due.workflow, due.version, due.id
FROM unnest(:shards::integer[]) AS mine (shard)
CROSS JOIN LATERAL (
    SELECT run.shard, run.workflow, run.version, run.id, run.paused, run.held
    FROM watchbill.run
    WHERE run.shard = mine.shard
        AND run.status IN (0, 2)
        AND run.wake_at <= (SELECT watchbill.at(:now::bigint))
    ORDER BY run.wake_at
    LIMIT :limit::bigint
) AS due
WHERE NOT due.paused
    AND due.held IS NULL
