-- Delete what a run was told, so many.
DELETE FROM fact
WHERE rowid IN (
    SELECT rowid
    FROM fact
    WHERE run = :run
    LIMIT :limit
)
