-- Note the link that is the last one of a run: not if others have linked some meanwhile.
INSERT INTO chain (run, last)
SELECT num, :last
FROM run
WHERE num = :run
ON CONFLICT (run) DO UPDATE
SET last = excluded.last
WHERE chain.last = :after
