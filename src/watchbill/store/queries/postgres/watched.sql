-- Read rows by their numbers, to judge them: without what steps were given or have kept, which is nobody's business here.
-- What has failed comes with the end of the lease of whoever had it.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, NULL::bytea, policy,
    ''::bytea, watchbill.whole(run, result), kind, held, symptom, earlier, doubt, unsure, acts_until,
    CASE
        WHEN state = 2 THEN (
            -- Of who is provably dead, or has left, that is long past.
            SELECT CASE WHEN agent.state = 3 OR agent.found = 'dead' THEN 1 ELSE agent.until END
            FROM watchbill.agent
            WHERE agent.id = attempt.agent
        )
    END
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
