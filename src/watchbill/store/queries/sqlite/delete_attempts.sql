-- Delete rows of a run, so many.
DELETE FROM attempt
WHERE rowid IN (
    SELECT rowid
    FROM attempt
    WHERE run = :run
    LIMIT :limit
)
