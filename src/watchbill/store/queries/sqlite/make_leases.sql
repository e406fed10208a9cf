-- Give every shard a lease that nobody holds.
INSERT INTO lease (role, shard)
SELECT 'scheduler', id
FROM shard
WHERE true
ON CONFLICT DO NOTHING
