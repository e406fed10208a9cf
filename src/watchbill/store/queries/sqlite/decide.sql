-- Write down what was decided, once; its key says which.
INSERT INTO decision (run, call, fence, n, at, actor, body)
VALUES (:run, :call, :decision, 0, :now, :actor, :body)
ON CONFLICT DO NOTHING
