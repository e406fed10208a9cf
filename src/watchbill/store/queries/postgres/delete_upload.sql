-- Discard an upload that no turn has taken.
DELETE FROM watchbill.upload
WHERE run = :run::bigint
    AND id = :id::bigint
RETURNING id
