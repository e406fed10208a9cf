-- Insert facts for live runs, each once, however often it is told; a run that ends meanwhile is waited for.
WITH asked AS MATERIALIZED (
    SELECT *
    FROM unnest(
        :namespaces::text[], :ids::text[], :kinds::text[], :refs::text[], :actors::text[], :bodies::bytea[]
    ) WITH ORDINALITY AS told (namespace, id, kind, ref, actor, body, place)
),
there AS MATERIALIZED (
    SELECT num, shard, namespace, id, status
    FROM watchbill.run
    WHERE num = ANY (ARRAY(
        SELECT run.num
        FROM asked
        CROSS JOIN watchbill.run
        WHERE run.namespace = asked.namespace
            AND run.id = asked.id
    ))
    ORDER BY num
    FOR SHARE
),
told AS (
    INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
    SELECT there.shard, there.num, kind, ref, actor, body, (SELECT watchbill.at(:now::bigint))
    FROM asked
    CROSS JOIN there
    WHERE there.namespace = asked.namespace
        AND there.id = asked.id
        AND there.status < 10
    ORDER BY place
    ON CONFLICT (run, kind, ref) DO NOTHING
)
SELECT there.status
FROM asked
LEFT JOIN there ON there.namespace = asked.namespace AND there.id = asked.id
ORDER BY place
