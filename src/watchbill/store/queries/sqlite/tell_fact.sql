-- Insert a fact once, however often it is told.
INSERT INTO fact (shard, run, kind, ref, actor, body, at)
VALUES (:shard, :run, :kind, :ref, :actor, :body, :now)
ON CONFLICT (run, kind, ref) DO NOTHING
