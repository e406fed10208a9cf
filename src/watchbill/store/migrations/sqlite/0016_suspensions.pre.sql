-- Agents say how what they did has ended of late; one that fails where others succeed is suspended.

-- What it said.
ALTER TABLE agent ADD COLUMN doings BLOB NOT NULL DEFAULT x'';
-- Why it gets no work but what it is tried with; NULL for nearly all.
ALTER TABLE agent ADD COLUMN suspension BLOB;
-- What it did before that is forgiven.
ALTER TABLE agent ADD COLUMN judged_from INTEGER NOT NULL DEFAULT 0;
