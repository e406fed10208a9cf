-- Read entries of earlier parts that still count: a deadline that has passed does not come again. INDEXED BY: by the primary
-- key all entries of the run would be read.
SELECT
    run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
FROM journal INDEXED BY journal_part
WHERE run = :run
    AND kind = 10
    AND kind IN (9, 10)
    AND seq < :before
ORDER BY seq
