-- Find out whether a fact is there.
SELECT 1
FROM fact
WHERE id = ?1
