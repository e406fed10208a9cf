-- Read rows whose next look has come, of all shards or of some, the longest overdue first;
-- without what steps were given or have kept, which is nobody's business here.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, NULL, policy, x'', result,
    kind, held, symptom, earlier, doubt
FROM attempt
WHERE watch_at <= :now
    AND (:shards IS NULL OR shard IN (SELECT value FROM json_each(:shards)))
ORDER BY watch_at, id
LIMIT :limit
