-- Record how long runs are kept, by workflow and version.
INSERT INTO watchbill.retention (namespace, workflow, version, kept)
SELECT :namespace, new.workflow, new.version, new.kept
FROM unnest(:workflows::text[], :versions::integer[], :kepts::bigint[]) AS new (workflow, version, kept)
ORDER BY new.workflow, new.version
ON CONFLICT (namespace, workflow, version) DO UPDATE
SET kept = excluded.kept
WHERE retention.kept IS DISTINCT FROM excluded.kept
