-- Insert runs unless their ids, or themselves, are there; `whole`: all of them, or the statement fails.
-- An id that another open transaction is creating is waited for no longer than `patience`.
-- Runs of a namespace with a quota are left out, unless the caller has counted the open ones (`counted`).
WITH bounded AS MATERIALIZED (
    SELECT current_setting('lock_timeout') AS before, set_config('lock_timeout', :patience::text, true) AS patience
),
asked AS MATERIALIZED (
    SELECT new.*
    FROM bounded
    CROSS JOIN unnest(
        :nums::bigint[], :shards::integer[], :namespaces::text[], :ids::text[], :workflows::text[],
        :versions::integer[], :inputs::bytea[], :priorities::integer[], :ats::bigint[], :delays::bigint[],
        :deadlines::bigint[], :deadline_ins::bigint[], :tags::text[], :parents::bigint[], :roots::bigint[]
    ) AS new (
        num, shard, namespace, id, workflow, version, input, priority, at, delay, deadline, deadline_in, tags, parent,
        root
    )
    WHERE bounded.patience IS NOT NULL
        AND (
            :counted::boolean
            OR (SELECT quota.runs FROM watchbill.quota WHERE quota.namespace = new.namespace) IS NULL
        )
),
inserted AS (
    INSERT INTO watchbill.run (
        num, shard, namespace, id, workflow, version, input, created_at, wake_at, priority, deadline, tags, parent, root
    )
    SELECT
        num, shard, namespace, id, workflow, version, input, (SELECT watchbill.at(:now::bigint)),
        coalesce(at, (SELECT watchbill.at(:now::bigint))) + delay, priority,
        least(deadline, (SELECT watchbill.at(:now::bigint)) + deadline_in),
        string_to_array(tags, chr(31)), parent, coalesce(root, num)
    FROM asked
    ON CONFLICT DO NOTHING
    RETURNING num, created_at
),
kept AS (
    INSERT INTO watchbill.blob (run, n, body)
    SELECT large.run, large.n, large.body
    FROM inserted
    CROSS JOIN unnest(:blob_runs::bigint[], :blob_ns::bigint[], :blob_bodies::bytea[]) AS large (run, n, body)
    WHERE large.run = inserted.num
),
checked AS MATERIALIZED (
    SELECT
        CASE
            WHEN :whole::boolean AND count(*) < cardinality(:nums::bigint[])
                THEN watchbill.refuse('an id is taken', count(*), cardinality(:nums::bigint[]))
        END AS refused,
        set_config('lock_timeout', (SELECT before FROM bounded), true) AS as_before
    FROM inserted
)
SELECT inserted.num, inserted.created_at
FROM checked
LEFT JOIN inserted ON true
