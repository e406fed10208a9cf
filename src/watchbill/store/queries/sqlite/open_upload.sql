-- Find an upload that no turn has taken, and that was not discarded.
SELECT 1
FROM upload
WHERE run = :run
    AND id = :id
