-- Say whether there are uploads that no turn has taken: then some may be garbage.
SELECT EXISTS (SELECT 1 FROM upload WHERE shard IN (SELECT value FROM json_each(:shards)))
