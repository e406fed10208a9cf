-- Tell other runs, by their numbers or their ids, or all children of a run, unless they have ended; each fact once.
-- Children that this very statement starts are not seen: a run that tells its children starts none by the same turn.
INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
SELECT there.shard, there.num, told.kind, told.ref, told.actor, told.body, mine.now
FROM unnest(
    :fact_runs::bigint[], :fact_namespaces::text[], :fact_ids::text[], :fact_kinds::text[], :fact_refs::text[],
    :fact_actors::text[], :fact_bodies::bytea[], :fact_childrens::boolean[]
) WITH ORDINALITY AS told (run, namespace, id, kind, ref, actor, body, children, place)
CROSS JOIN mine
CROSS JOIN LATERAL (
    SELECT num, shard, status
    FROM watchbill.run
    WHERE run.num = told.run
        AND told.children IS NOT TRUE
    UNION ALL
    SELECT num, shard, status
    FROM watchbill.run
    WHERE run.parent = told.run
        AND told.children
    UNION ALL
    SELECT num, shard, status
    FROM watchbill.run
    WHERE told.run IS NULL
        AND run.namespace = told.namespace
        AND run.id = told.id
) AS there
WHERE mine.whole
    AND there.status < 10
ORDER BY told.place, there.num
ON CONFLICT (run, kind, ref) DO NOTHING
