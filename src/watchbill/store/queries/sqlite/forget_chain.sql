-- Say that what was decided about a run goes: from now on nobody links it, or misses it.
INSERT INTO chain (run, last)
SELECT :run, x''
WHERE EXISTS (SELECT 1 FROM decision WHERE run = :run)
ON CONFLICT (run) DO UPDATE
SET last = excluded.last
