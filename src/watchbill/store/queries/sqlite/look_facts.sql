-- Read what was told: per shard the oldest.
SELECT
    fact.id, fact.shard, fact.run, fact.kind, fact.ref, fact.actor, fact.body, fact.at
FROM json_each(:shards) AS mine
CROSS JOIN fact
WHERE fact.id IN (
    SELECT id
    FROM fact AS told
    WHERE told.shard = mine.value
    ORDER BY told.id
    LIMIT :share
)
ORDER BY fact.id
