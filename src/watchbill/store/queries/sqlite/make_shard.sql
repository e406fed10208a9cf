-- Make a shard of a region once.
INSERT INTO shard (namespace, region, n)
VALUES (?1, ?2, ?3)
ON CONFLICT DO NOTHING
