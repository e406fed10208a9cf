-- Read a run's journal, or its next entries, in the order in which its workflow saw them.
SELECT
    run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
FROM journal
WHERE run = :run
    AND seq > :after
ORDER BY seq
LIMIT :limit
