-- Find those shards that are released, buried, this owner's or (if asked for) expired, and how their last owner left them.
SELECT
    lease.shard,
    CASE
        WHEN owner IS NULL OR owner = :owner THEN unclean
        ELSE 1
    END,
    doing,
    owner
FROM json_each(:shards) AS asked
CROSS JOIN lease ON role = 'scheduler' AND lease.shard = asked.value
WHERE owner IS NULL
    OR owner = :owner
    OR until = 0
    OR (:expired AND until <= :now)
