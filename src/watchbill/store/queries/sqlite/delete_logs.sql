-- Delete the last words of a run's attempts, so many.
DELETE FROM log
WHERE rowid IN (
    SELECT rowid
    FROM log
    WHERE run = :run
    LIMIT :limit
)
