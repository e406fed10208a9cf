-- Create a schedule at run time if its name is free, or change it if it is as it was read; never one that is in code,
-- unless that has ended.
INSERT INTO schedule (namespace, name, workflow, shard, version, spec, timing, input, last_slot, wake_at, created)
VALUES (:namespace, :name, :workflow, :shard, :version, :spec, :timing, :input, :now, :now, 1)
ON CONFLICT (namespace, name) DO UPDATE SET
    workflow = excluded.workflow, shard = excluded.shard, version = excluded.version, spec = excluded.spec,
    timing = excluded.timing, input = excluded.input, created = excluded.created, rev = rev + 1,
    wake_at = excluded.wake_at,
    last_slot = CASE
        WHEN timing <> excluded.timing OR wake_at IS NULL THEN max(last_slot, excluded.last_slot)
        ELSE last_slot
    END
WHERE (created OR wake_at IS NULL)
    AND rev = :rev
