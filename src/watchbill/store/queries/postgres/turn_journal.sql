-- Append entries; a key that is there already fails the turn.
INSERT INTO watchbill.journal (run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body)
SELECT run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
FROM unnest(:journal::watchbill.journal_entry[])
WHERE (SELECT whole FROM mine)
