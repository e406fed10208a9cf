-- Write down the schedules that code has; one that is new, or whose timing is, begins with the next slot from now. Those
-- end whose workflows are there and have no schedule any more. Schedules that were created at run time stay, and start
-- the version of their workflow that this code has.
WITH announced AS (
    INSERT INTO watchbill.schedule AS old (
        namespace, name, shard, version, spec, timing, input, last_slot, wake_at
    )
    SELECT
        :namespace, name, shard, version, spec, timing, input, (SELECT watchbill.at(:now::bigint)),
        (SELECT watchbill.at(:now::bigint))
    FROM unnest(
        :names::text[], :shards::integer[], :versions::integer[], :specs::bytea[], :timings::text[], :inputs::bytea[]
    ) AS new (name, shard, version, spec, timing, input)
    ON CONFLICT (namespace, name) DO UPDATE SET
        shard = excluded.shard, version = excluded.version, spec = excluded.spec, timing = excluded.timing,
        input = excluded.input, rev = old.rev + 1, wake_at = excluded.wake_at,
        last_slot = CASE
            WHEN old.timing <> excluded.timing OR old.wake_at IS NULL THEN greatest(old.last_slot, excluded.last_slot)
            ELSE old.last_slot
        END
    WHERE NOT old.created
        AND (
            old.wake_at IS NULL
            OR (old.shard, old.version, old.spec, old.input)
                IS DISTINCT FROM (excluded.shard, excluded.version, excluded.spec, excluded.input)
        )
    RETURNING id
),
ended AS (
    UPDATE watchbill.schedule
    SET wake_at = NULL, rev = rev + 1
    WHERE namespace = :namespace
        AND name = ANY (:without::text[])
        AND wake_at IS NOT NULL
        AND NOT created
    RETURNING id
),
revised AS (
    UPDATE watchbill.schedule
    SET version = new.version, rev = rev + 1
    FROM unnest(:workflows::text[], :workflow_versions::integer[]) AS new (workflow, version)
    WHERE schedule.namespace = :namespace
        AND schedule.workflow = new.workflow
        AND schedule.created
        AND schedule.version <> new.version
    RETURNING id
)
SELECT count(*)
FROM (SELECT id FROM announced UNION ALL SELECT id FROM ended UNION ALL SELECT id FROM revised) AS changed
