-- Read a run's rows in the order in which they were made.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, checkpoint, policy, args, result,
    kind, held, symptom, earlier, doubt, unsure, acts_until
FROM attempt
WHERE run = :run
ORDER BY id
