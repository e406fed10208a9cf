-- Delete the chunks of an upload that is discarded.
DELETE FROM chunk
WHERE run = :run
    AND upload = :id
