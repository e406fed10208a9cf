-- Copy chosen entries of a journal, counted anew, behind those that are there.
INSERT INTO journal (run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body)
SELECT
    :run, :before + row_number() OVER (ORDER BY seq), kind, key, CASE WHEN :loose THEN NULL ELSE digest END, fence,
    outcome, agent, started_at, at, body
FROM journal
WHERE run = :source
    AND seq IN (SELECT value FROM json_each(:entries))
