-- Name the run that is about to be advanced, or none, on a shard of this owner.
UPDATE lease
SET doing = ?3
WHERE role = 'scheduler'
    AND shard = ?1
    AND owner = ?2
