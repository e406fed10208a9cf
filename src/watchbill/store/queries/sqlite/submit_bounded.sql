-- Insert a run unless its id, or itself, is there, or its namespace has a quota. 0 and '' are none.
INSERT INTO run (
    num, shard, namespace, id, workflow, version, created_at, input, wake_at, priority, deadline, tags, parent, root,
    slot, parent_id
)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, nullif(?11, 0), nullif(?12, ''), nullif(?13, 0), ?14,
    nullif(?15, 0), nullif(?16, '')
WHERE NOT EXISTS (SELECT 1 FROM quota WHERE namespace = ?3)
ON CONFLICT DO NOTHING
