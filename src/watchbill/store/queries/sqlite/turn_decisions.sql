-- Insert a decision once; its key says which.
INSERT INTO decision (run, call, fence, n, actor, body, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO NOTHING
