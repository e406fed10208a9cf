-- Write down a schedule that code has; one that is new, or whose timing is, begins with the next slot from now.
-- A schedule of that name that was created at run time stays as it is.
INSERT INTO schedule (namespace, name, shard, version, spec, timing, input, last_slot, wake_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
ON CONFLICT (namespace, name) DO UPDATE SET
    shard = excluded.shard, version = excluded.version, spec = excluded.spec, timing = excluded.timing,
    input = excluded.input, rev = rev + 1, wake_at = excluded.wake_at,
    last_slot = CASE
        WHEN timing <> excluded.timing OR wake_at IS NULL THEN max(last_slot, excluded.last_slot)
        ELSE last_slot
    END
WHERE NOT created
    AND (
        wake_at IS NULL
        OR shard <> excluded.shard
        OR version <> excluded.version
        OR spec <> excluded.spec
        OR input <> excluded.input
    )
