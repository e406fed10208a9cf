-- Find which of these shards the owner holds, each under its own term; buried ones only if asked for.
SELECT lease.shard
FROM json_each(:terms) AS asked
CROSS JOIN lease ON role = 'scheduler' AND lease.shard = CAST(asked.key AS INTEGER)
WHERE owner = :owner
    AND term = asked.value
    AND (until <> 0 OR :buried)
