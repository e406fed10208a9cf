-- Read a run's journal in the order in which its workflow saw it.
SELECT
    run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
FROM journal
WHERE run = :run
ORDER BY seq
