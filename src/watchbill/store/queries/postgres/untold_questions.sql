-- Read questions that nobody was told of, with the namespaces of their runs; what was answered meanwhile is left out.
-- The last column: the region whose role may read of it, whoever reads it now; none if that region has no role.
SELECT
    attempt.id, run.namespace, attempt.run_id, attempt.call, watchbill.whole(attempt.run, attempt.args),
    coalesce((
        SELECT (SELECT region_role.region FROM watchbill.region_role WHERE region_role.region = shard.region LIMIT 1)
        FROM watchbill.shard
        WHERE shard.id = run.shard
    ), '')
FROM watchbill.attempt
CROSS JOIN watchbill.run
WHERE attempt.id = ANY (:ids::bigint[])
    AND run.num = attempt.run
ORDER BY attempt.id
