-- Read rows that are done or given up: per shard the oldest. Rows of the runs in `left_out` are not read; it is mostly
-- NULL, and then the index alone tells the ids.
SELECT
    attempt.id, attempt.run, attempt.run_id, attempt.part, attempt.shard, attempt.call, attempt.step, attempt.queue,
    attempt.state, attempt.fence, attempt.agent, attempt.failures, attempt.losses, attempt.rung,
    attempt.cancel, attempt.why, attempt.started_at, attempt.ended_at, attempt.watch_at,
    attempt.progress_at, attempt.progress, attempt.checkpoint, attempt.policy, attempt.args,
    attempt.result, attempt.kind, attempt.held, attempt.symptom, attempt.earlier, attempt.doubt, attempt.unsure,
    attempt.acts_until
FROM json_each(:shards) AS mine
CROSS JOIN attempt
WHERE attempt.id IN (
    SELECT id
    FROM attempt AS final
    WHERE final.shard = mine.value
        AND final.state >= 4
        AND (:left_out IS NULL OR final.run NOT IN (SELECT value FROM json_each(:left_out)))
    ORDER BY final.id
    LIMIT :share
)
ORDER BY attempt.id
