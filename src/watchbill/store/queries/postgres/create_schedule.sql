-- Create a schedule at run time if its name is free, or change it if it is as it was read; never one that is in code,
-- unless that has ended.
INSERT INTO watchbill.schedule AS old (
    namespace, name, workflow, shard, version, spec, timing, input, last_slot, wake_at, created
)
VALUES (
    :namespace, :name, :workflow, :shard::integer, :version::integer, :spec::bytea, :timing, :input::bytea,
    (SELECT watchbill.at(:now::bigint)), (SELECT watchbill.at(:now::bigint)), true
)
ON CONFLICT (namespace, name) DO UPDATE SET
    workflow = excluded.workflow, shard = excluded.shard, version = excluded.version, spec = excluded.spec,
    timing = excluded.timing, input = excluded.input, created = excluded.created, rev = old.rev + 1,
    wake_at = excluded.wake_at,
    last_slot = CASE
        WHEN old.timing <> excluded.timing OR old.wake_at IS NULL THEN greatest(old.last_slot, excluded.last_slot)
        ELSE old.last_slot
    END
WHERE (old.created OR old.wake_at IS NULL)
    AND old.rev = :rev::bigint
RETURNING id
