-- Append entries; a key that is there already fails the turn. OR FAIL: all is rolled back anyway, so SQLite need not keep
-- what one statement has changed.
INSERT OR FAIL INTO journal (
    run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
