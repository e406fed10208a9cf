-- Give one shard back, cleanly, if it is still held under that term.
UPDATE lease
SET owner = NULL, until = 0, unclean = 0, doing = NULL
WHERE role = 'scheduler'
    AND shard = ?1
    AND owner = ?2
    AND term = ?3
