-- Read runs that nothing moves; of those that have diverged, the decision that says how. What moves again is left out.
-- The last column: the region whose role may read of it, whoever reads it now; none if that region has no role.
SELECT
    run.num, run.namespace, run.id, run.workflow, run.version, run.status, run.held,
    CASE WHEN run.status = 4 THEN (
        SELECT body
        FROM watchbill.decision
        WHERE decision.run = run.num
            AND decision.actor = 'scheduler'
        ORDER BY decision.id DESC
        LIMIT 1
    ) END,
    coalesce((
        SELECT (SELECT region_role.region FROM watchbill.region_role WHERE region_role.region = shard.region LIMIT 1)
        FROM watchbill.shard
        WHERE shard.id = run.shard
    ), '')
FROM watchbill.run
WHERE run.num = ANY (:nums::bigint[])
    AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code') IS TRUE -- never found by it: by their numbers
ORDER BY run.num
