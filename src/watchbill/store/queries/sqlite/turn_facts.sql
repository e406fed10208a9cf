-- Tell another run, by its number or its id, unless it has ended; each fact once.
INSERT INTO fact (shard, run, kind, ref, actor, body, at)
SELECT shard, num, ?4, ?5, ?6, ?7, ?8
FROM run
WHERE num = coalesce(?1, (SELECT num FROM run WHERE namespace = ?2 AND id = ?3))
    AND status < 10
ON CONFLICT (run, kind, ref) DO NOTHING
