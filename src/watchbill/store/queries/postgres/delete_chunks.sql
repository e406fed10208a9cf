-- Delete the chunks of an upload that is discarded.
DELETE FROM watchbill.chunk
WHERE run = :run::bigint
    AND upload = :id::bigint
