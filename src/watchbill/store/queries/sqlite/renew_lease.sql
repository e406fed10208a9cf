-- Prolong one lease under its term; one that lasts for ever is not written again, a buried one stays so.
UPDATE lease
SET until = ?4
WHERE role = 'scheduler'
    AND shard = ?1
    AND owner = ?2
    AND term = ?3
    AND until <> ?4
    AND until <> 0
