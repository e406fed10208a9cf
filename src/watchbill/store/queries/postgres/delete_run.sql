-- Delete a run that has ended, with its last entry, its last link, and the large bodies it has left.
WITH blobs AS (
    DELETE FROM watchbill.blob
    WHERE run = :run::bigint
),
entry AS (
    DELETE FROM watchbill.journal
    WHERE run = :run
),
chain AS (
    DELETE FROM watchbill.chain
    WHERE run = :run
),
failed AS (
    DELETE FROM watchbill.failed_run
    WHERE run = :run
)
DELETE FROM watchbill.run
WHERE num = :run
    AND status >= 10
