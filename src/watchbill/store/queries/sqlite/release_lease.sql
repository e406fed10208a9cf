-- Give one shard back if it is still held under that term: cleanly, or with losses for whoever comes next to count.
UPDATE lease
SET owner = NULL, until = 0, unclean = ?4, doing = CASE WHEN ?4 THEN doing END
WHERE role = 'scheduler'
    AND shard = ?1
    AND owner = ?2
    AND term = ?3
