-- Find out whether an attempt's row is there.
SELECT 1
FROM attempt
WHERE id = ?1
