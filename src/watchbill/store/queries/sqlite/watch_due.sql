-- Read rows whose next look has come, the longest overdue first.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, checkpoint, policy, args, result,
    kind, held, symptom, earlier, doubt
FROM attempt
WHERE watch_at <= :now
ORDER BY watch_at, id
LIMIT :limit
