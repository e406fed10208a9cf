-- Say which state of the policies of a shard's namespace is the newest.
SELECT coalesce(max(policy.revision), 0)
FROM shard
CROSS JOIN policy ON policy.namespace = shard.namespace
WHERE shard.id = :shard
