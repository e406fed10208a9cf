-- Find shards that nobody can take.
SELECT id
FROM shard
WHERE NOT EXISTS (
    SELECT 1
    FROM lease
    WHERE lease.role = 'scheduler'
        AND lease.shard = shard.id
)
