-- Tell other runs, by their numbers or their ids, unless they have ended; each fact once.
INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
SELECT there.shard, there.num, told.kind, told.ref, told.actor, told.body, mine.now
FROM unnest(
    :fact_runs::bigint[], :fact_namespaces::text[], :fact_ids::text[], :fact_kinds::text[], :fact_refs::text[],
    :fact_actors::text[], :fact_bodies::bytea[]
) WITH ORDINALITY AS told (run, namespace, id, kind, ref, actor, body, place)
CROSS JOIN mine
CROSS JOIN LATERAL (
    SELECT num, shard, status
    FROM watchbill.run
    WHERE run.num = told.run
    UNION ALL
    SELECT num, shard, status
    FROM watchbill.run
    WHERE told.run IS NULL
        AND run.namespace = told.namespace
        AND run.id = told.id
) AS there
WHERE mine.whole
    AND there.status < 10
ORDER BY told.place
ON CONFLICT (run, kind, ref) DO NOTHING
