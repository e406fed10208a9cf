-- Read rows whose next look has come, of all shards or of some, the longest overdue first;
-- without what steps were given or have kept, which is nobody's business here. What has failed comes with the end of
-- the lease of whoever had it.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, NULL, policy, x'', result,
    kind, held, symptom, earlier, doubt, unsure, acts_until,
    CASE
        WHEN state = 2 THEN (
            -- Of who is provably dead, or has left, that is long past.
            SELECT CASE WHEN agent.state = 3 OR agent.found = 'dead' THEN 1 ELSE agent.until END
            FROM agent
            WHERE agent.id = attempt.agent
        )
    END
FROM attempt
WHERE watch_at <= :now
    AND (:shards IS NULL OR shard IN (SELECT value FROM json_each(:shards)))
ORDER BY watch_at, id
LIMIT :limit
