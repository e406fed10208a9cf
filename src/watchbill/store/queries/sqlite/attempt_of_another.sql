-- Find out whether an id belongs to the row of another call.
SELECT 1
FROM attempt
WHERE id = ?1
    AND (run <> ?2 OR call <> ?3)
