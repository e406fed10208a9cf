-- Read what was decided about a run, in order.
SELECT
    run, call, fence, n, actor, body, at
FROM watchbill.decision
WHERE run = :run
ORDER BY id
