-- Find those shards that are released, buried, this owner's or (if asked for) expired, and how their last owner left them.
-- A lease of this owner under a term that it has given up is unclean: a store may have lost that it was released.
SELECT
    lease.shard,
    CASE
        WHEN owner IS NULL THEN unclean
        WHEN owner = :owner THEN unclean OR term <= coalesce(json_extract(:given_up, '$."' || shard || '"'), 0)
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
