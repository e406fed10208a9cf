-- Give one shard to its new owner; what the dead one was doing has been told and is forgotten.
UPDATE lease
SET owner = ?2, term = ?3, until = ?4, unclean = ?5, doing = NULL
WHERE role = 'scheduler'
    AND shard = ?1
