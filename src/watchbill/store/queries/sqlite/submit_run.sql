-- Insert a run unless its id, or itself, is there.
INSERT INTO run (num, shard, namespace, id, workflow, version, root, wake_at, created_at, input)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?1, ?7, ?7, ?8)
ON CONFLICT DO NOTHING
