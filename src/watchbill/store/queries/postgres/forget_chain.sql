-- Say that what was decided about a run goes: from now on nobody links it, or misses it.
INSERT INTO watchbill.chain (run, last)
SELECT :run::bigint, ''
WHERE EXISTS (SELECT 1 FROM watchbill.decision WHERE run = :run)
ON CONFLICT (run) DO UPDATE
SET last = excluded.last
