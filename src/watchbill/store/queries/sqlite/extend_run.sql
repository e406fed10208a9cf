-- Give a live run a later deadline, if it still has the one that was seen; gives where it lives.
UPDATE run
SET deadline = :until
WHERE namespace = :namespace
    AND id = :id
    AND status < 10
    AND deadline = :seen
RETURNING num, shard
