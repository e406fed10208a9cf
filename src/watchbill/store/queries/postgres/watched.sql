-- Read rows by their numbers, to judge them: without what steps were given or have kept, which is nobody's business here.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, NULL::bytea, policy,
    ''::bytea, watchbill.whole(run, result), kind, held, symptom, earlier, doubt
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
