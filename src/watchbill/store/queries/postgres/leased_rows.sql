-- Read what this agent still runs of one lease.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, watchbill.whole(run, checkpoint), policy,
    watchbill.whole(run, args), watchbill.whole(run, result), kind, held, symptom, earlier, doubt, unsure
FROM watchbill.attempt
WHERE agent = :agent
    AND state = 1
    AND lease_no = :lease_no
ORDER BY rank, id
