-- Read the policies of the next live rows of some shards that one of these steps may concern: of questions none does.
SELECT id, step, policy
FROM attempt
WHERE id > :after
    AND shard IN (SELECT value FROM json_each(:shards))
    AND state < 4
    AND kind <> 1
    AND (step IN (SELECT value FROM json_each(:steps)) OR instr(policy, :ladder) > 0)
ORDER BY id
LIMIT :limit
