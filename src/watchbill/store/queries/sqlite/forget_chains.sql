-- Mark runs whose decisions are deleted, so that no supervisor links them or misses one.
INSERT INTO chain (run, last)
SELECT wanted.value, x''
FROM json_each(:runs) AS wanted
WHERE EXISTS (SELECT 1 FROM decision WHERE run = wanted.value)
ON CONFLICT (run) DO UPDATE
SET last = excluded.last
