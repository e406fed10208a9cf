-- Insert a run in a user's transaction unless its id, or itself, is there; due at once whatever that process's clock says.
INSERT INTO run (num, shard, namespace, id, workflow, version, root, wake_at, created_at, input)
SELECT :num, :shard, :namespace, :id, :workflow, :version, :num, min(:now, value), :now, :input
FROM meta
WHERE key = 'time'
ON CONFLICT DO NOTHING
RETURNING num
