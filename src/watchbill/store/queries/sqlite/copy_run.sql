-- Insert a run that goes on from another one's journal, unless its id, or itself, is there. 0 and '' are none.
INSERT INTO run (
    num, shard, namespace, id, workflow, version, created_at, input, wake_at, priority, deadline, tags, root,
    begun_at, early, slot, parent_id, copied
)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, nullif(?11, 0), nullif(?12, ''), ?1, begun_at, 1,
    nullif(?13, 0), nullif(?14, ''), ?15
FROM run
WHERE num = ?16
ON CONFLICT DO NOTHING
