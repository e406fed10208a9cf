-- Read the rows of runs in the order in which they were made.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, watchbill.whole(run, checkpoint), policy,
    watchbill.whole(run, args), watchbill.whole(run, result), kind, held, symptom, earlier, doubt, unsure, acts_until
FROM watchbill.attempt
WHERE run = ANY (:runs::bigint[])
ORDER BY id
