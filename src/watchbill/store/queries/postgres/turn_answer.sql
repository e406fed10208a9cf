-- Say whether the turn was applied, whole; at what time; and which of its shards are held.
SELECT mine.whole, mine.now, ARRAY(SELECT shard FROM held)
FROM mine
