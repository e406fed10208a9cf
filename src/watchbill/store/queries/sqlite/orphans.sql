-- Read how many orphans of each kind a self-audit has found, ever.
SELECT kind, found, last_at
FROM orphan
ORDER BY kind
