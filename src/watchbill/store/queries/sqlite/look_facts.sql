-- Read what was told: per shard the oldest, but for the ids in `left_out`, which is mostly NULL.
SELECT
    fact.id, fact.shard, fact.run, fact.kind, fact.ref, fact.actor, fact.body, fact.at
FROM json_each(:shards) AS mine
CROSS JOIN fact
WHERE fact.id IN (
    SELECT id
    FROM fact AS told
    WHERE told.shard = mine.value
        AND (:left_out IS NULL OR told.id NOT IN (SELECT value FROM json_each(:left_out)))
    ORDER BY told.id
    LIMIT :share
)
ORDER BY fact.id
