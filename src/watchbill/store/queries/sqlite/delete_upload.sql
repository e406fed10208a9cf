-- Delete the row of an upload: a turn has taken it, or it is discarded.
DELETE FROM upload
WHERE run = :run
    AND id = :id
