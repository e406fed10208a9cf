-- Make a shard of a region once.
INSERT INTO shard (namespace, region, n)
VALUES (?, ?, ?)
ON CONFLICT DO NOTHING
