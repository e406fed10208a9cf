-- Insert a run unless its id, or itself, is there.
INSERT INTO run (
    num, shard, namespace, id, workflow, version, created_at, input, wake_at, priority, deadline, tags, parent, root
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, coalesce(?14, ?1))
ON CONFLICT DO NOTHING
