-- Read what was decided about a run, and each link.
SELECT run, call, fence, n, at, actor, body, chain
FROM decision
WHERE run = :run
