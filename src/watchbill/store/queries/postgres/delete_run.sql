-- Delete a run that has ended, with its last entry, its last link, and the large bodies and chunks it has left.
WITH blobs AS (
    DELETE FROM watchbill.blob
    WHERE run = :run::bigint
),
chunks AS (
    DELETE FROM watchbill.chunk
    WHERE run = :run
),
uploads AS (
    DELETE FROM watchbill.upload
    WHERE run = :run
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
