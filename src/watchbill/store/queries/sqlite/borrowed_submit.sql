-- Insert a run in a user's transaction unless its id, or itself, is there. Due at once whatever that process's clock says,
-- unless its author wants it later. Not in a namespace with a quota, unless the open runs are counted (`counted`).
INSERT INTO run (
    num, shard, namespace, id, workflow, version, root, wake_at, created_at, input, priority, deadline, tags
)
SELECT
    :num, :shard, :namespace, :id, :workflow, :version, :num,
    CASE WHEN :later THEN :wake_at ELSE min(:now, value) END, :now, :input, :priority, :deadline, :tags
FROM meta
WHERE key = 'time'
    AND (:counted OR NOT EXISTS (SELECT 1 FROM quota WHERE quota.namespace = :namespace))
ON CONFLICT DO NOTHING
RETURNING num
