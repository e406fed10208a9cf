-- Read calls that wait for a person, with the namespaces of their runs; what has moved on meanwhile is left out.
-- The last column: the region whose role may read of it, whoever reads it now; none if that region has no role.
SELECT
    attempt.id, attempt.fence, attempt.why, run.namespace, attempt.run_id, attempt.call, attempt.step, attempt.rung,
    attempt.policy, watchbill.whole(attempt.run, attempt.result), attempt.watch_at,
    coalesce((
        SELECT (SELECT region_role.region FROM watchbill.region_role WHERE region_role.region = shard.region LIMIT 1)
        FROM watchbill.shard
        WHERE shard.id = run.shard
    ), '')
FROM watchbill.attempt
CROSS JOIN watchbill.run
WHERE attempt.id = ANY (:ids::bigint[])
    AND run.num = attempt.run
    AND attempt.state = :parked::smallint
    AND attempt.why IS NOT NULL
ORDER BY attempt.id
