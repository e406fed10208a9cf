-- Read rows that were found final, in order.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, watchbill.whole(run, checkpoint), policy,
    watchbill.whole(run, args), watchbill.whole(run, result), kind, held, symptom, earlier, doubt, unsure, acts_until
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
    AND state >= :final::smallint
ORDER BY id
