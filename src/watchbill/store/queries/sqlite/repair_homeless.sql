-- Give the shard of a run a lease that somebody can take.
INSERT INTO lease (role, shard)
SELECT 'scheduler', shard
FROM run
WHERE num = :id
ON CONFLICT DO NOTHING
