-- Read what a run has been told and has not taken in.
SELECT
    id, shard, run, kind, ref, actor, body, at
FROM fact
WHERE run = :run
ORDER BY id
