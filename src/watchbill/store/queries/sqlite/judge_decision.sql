-- Record why, under the next number for this call and fence.
INSERT INTO decision (run, call, fence, n, at, actor, body)
SELECT :run, :call, :fence, coalesce(max(n), 0) + 1, :now, :actor, :body
FROM decision
WHERE run = :run
    AND call = :call
    AND fence = :fence
