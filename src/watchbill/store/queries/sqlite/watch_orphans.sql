-- Read rows running under an agent that is not alive (if asked for: in time); asks once per agent at work, not per row. Without what
-- steps were given or have kept.
WITH RECURSIVE holder (agent) AS (
    SELECT (SELECT min(agent) FROM attempt WHERE state = 1)
    UNION ALL
    SELECT (SELECT min(agent) FROM attempt WHERE state = 1 AND agent > holder.agent)
    FROM holder
    WHERE holder.agent IS NOT NULL
)
SELECT
    attempt.id, attempt.run, attempt.run_id, attempt.part, attempt.shard, attempt.call, attempt.step, attempt.queue,
    attempt.state, attempt.fence, attempt.agent, attempt.failures, attempt.losses, attempt.rung,
    attempt.cancel, attempt.why, attempt.started_at, attempt.ended_at, attempt.watch_at,
    attempt.progress_at, attempt.progress, NULL, attempt.policy, x'',
    attempt.result, attempt.kind, attempt.held, attempt.symptom, attempt.earlier, attempt.doubt, attempt.unsure
FROM holder
CROSS JOIN attempt ON attempt.agent = holder.agent AND attempt.state = 1
WHERE NOT EXISTS (
    SELECT 1
    FROM agent
    WHERE agent.id = holder.agent
        AND agent.state = 1
        AND (agent.until > :now OR NOT :expired)
)
    AND (:shards IS NULL OR attempt.shard IN (SELECT value FROM json_each(:shards)))
LIMIT :limit
