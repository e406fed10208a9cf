-- Delete what was decided about a run, so many.
DELETE FROM decision
WHERE rowid IN (
    SELECT rowid
    FROM decision
    WHERE run = :run
    LIMIT :limit
)
