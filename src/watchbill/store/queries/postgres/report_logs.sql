-- Keep the last words of those attempts whose reports were accepted.
-- Their rows are read as they were before the reports: the number of an attempt is what was on account while it ran.
INSERT INTO watchbill.log (run, call, fence, number, at, body)
SELECT DISTINCT ON (attempt.run, attempt.call, said.fence)
    attempt.run, attempt.call, said.fence, attempt.failures + attempt.losses, (SELECT watchbill.at(:now::bigint)), said.body
FROM unnest(:log_ids::bigint[], :log_fences::bigint[], :log_bodies::bytea[]) AS said (id, fence, body)
JOIN watchbill.attempt ON attempt.id = said.id
-- Looked up, not joined: a join without hashing would compare each with each.
WHERE coalesce((said.id, said.fence) IN (SELECT id, fence FROM accepted), false)
ORDER BY attempt.run, attempt.call, said.fence
ON CONFLICT (run, call, fence) DO UPDATE
SET number = excluded.number, at = excluded.at, body = excluded.body
