-- Record how long runs of one workflow version are kept.
INSERT INTO retention (namespace, workflow, version, kept)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (namespace, workflow, version) DO UPDATE
SET kept = excluded.kept
WHERE kept IS NOT excluded.kept
