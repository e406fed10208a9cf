-- Find out whether an attempt's row is there; a row of another call may have its id.
SELECT 1
FROM attempt
WHERE id = ?1
    AND run = ?2
    AND call = ?3
