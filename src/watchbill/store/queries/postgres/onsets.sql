-- Read the first two verdicts on each call since it had last recovered, of those up to the fence under which it is done.
SELECT verdict.run, verdict.call, verdict.fence, verdict.n, verdict.actor, verdict.body, verdict.at
FROM unnest(:runs::bigint[], :calls::text[], :fences::bigint[]) AS done (run, call, fence)
CROSS JOIN LATERAL (
    SELECT decision.run, decision.call, decision.fence, decision.n, decision.actor, decision.body, decision.at
    FROM watchbill.decision
    WHERE decision.run = done.run
        AND decision.call = done.call
        AND decision.fence <= done.fence
        AND decision.fence > coalesce(
            (
                SELECT max(well.fence)
                FROM watchbill.decision AS well
                WHERE well.run = done.run
                    AND well.call = done.call
                    AND well.fence < done.fence
                    AND well.n = :recovered::integer
            ),
            0
        )
        AND decision.n > 0
        AND decision.actor IN ('supervisor', 'observer')
    ORDER BY decision.fence, decision.n
    LIMIT 2
) AS verdict
