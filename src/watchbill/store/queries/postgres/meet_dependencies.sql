-- Make gates of dependencies, closed, if they are new: who counts needs a row to lock.
INSERT INTO watchbill.gate (namespace, name, tokens, tokens_at, said)
SELECT namespace, name, 0, (SELECT watchbill.at(:now::bigint)), 0
FROM unnest(:namespaces::text[], :names::text[]) AS mine (namespace, name)
ORDER BY namespace COLLATE "C", name COLLATE "C"
ON CONFLICT (namespace, name) DO NOTHING
