-- Copy chosen entries of a journal, counted anew.
INSERT INTO journal (run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body)
SELECT
    :run, row_number() OVER (ORDER BY seq), kind, key, CASE WHEN :loose THEN NULL ELSE digest END, fence, outcome,
    agent, started_at, at, body
FROM journal
WHERE run = :source
    AND seq IN (SELECT value FROM json_each(:entries))
