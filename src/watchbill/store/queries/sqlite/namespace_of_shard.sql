-- Say to which namespace a shard belongs.
SELECT namespace
FROM shard
WHERE id = :shard
