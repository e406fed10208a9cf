-- Count orphans of kinds.
INSERT INTO watchbill.orphan (kind, found, last_at)
SELECT kind, found, (SELECT watchbill.at(:now::bigint))
FROM unnest(:kinds::text[], :counts::bigint[]) AS given (kind, found)
ORDER BY kind
ON CONFLICT (kind) DO UPDATE
SET found = orphan.found + excluded.found, last_at = excluded.last_at
