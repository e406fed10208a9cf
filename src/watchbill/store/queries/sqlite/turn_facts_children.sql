-- Tell all open children of a run, each fact once.
INSERT INTO fact (shard, run, kind, ref, actor, body, at)
SELECT shard, num, ?2, ?3, ?4, ?5, ?6
FROM run
WHERE parent = ?1
    AND status < 10
ON CONFLICT (run, kind, ref) DO NOTHING
