-- Append one entry; a key that is there already fails the turn.
INSERT INTO journal (
    run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
