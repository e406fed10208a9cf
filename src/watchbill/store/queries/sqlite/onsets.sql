-- Read the first two verdicts on a call since it had last recovered, of those up to the fence under which it is done.
SELECT run, call, fence, n, actor, body, at
FROM decision
WHERE run = :run
    AND call = :call
    AND fence <= :fence
    AND fence > coalesce(
        (
            SELECT max(well.fence)
            FROM decision AS well
            WHERE well.run = :run
                AND well.call = :call
                AND well.fence < :fence
                AND well.n = :recovered
        ),
        0
    )
    AND n > 0
    AND actor IN ('supervisor', 'observer')
ORDER BY fence, n
LIMIT 2
