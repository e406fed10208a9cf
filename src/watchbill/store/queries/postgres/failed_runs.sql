-- Read runs that have ended because a step failed for good; what somebody has seen to meanwhile is left out.
-- The last column: the region whose role may read of it, whoever reads it now; none if that region has no role.
SELECT
    failed_run.run, run.namespace, run.id, failed_run.step, failed_run.undo, failed_run.body,
    coalesce((
        SELECT (SELECT region_role.region FROM watchbill.region_role WHERE region_role.region = shard.region LIMIT 1)
        FROM watchbill.shard
        WHERE shard.id = run.shard
    ), '')
FROM watchbill.failed_run
CROSS JOIN watchbill.run
WHERE failed_run.run = ANY (:nums::bigint[])
    AND run.num = failed_run.run
    AND (failed_run.incident IS NULL) IS TRUE -- never found by it: they are found by their numbers
ORDER BY failed_run.run
