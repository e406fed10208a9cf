-- Read rows by their numbers, to judge them: without what steps were given or have kept, which is nobody's business here.
-- What has failed comes with the end of the lease of whoever had it.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, NULL::bytea, policy,
    ''::bytea, watchbill.whole(run, result), kind, held, symptom, earlier, doubt,
    CASE WHEN state = 2 THEN (SELECT agent.until FROM watchbill.agent WHERE agent.id = attempt.agent) END
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
