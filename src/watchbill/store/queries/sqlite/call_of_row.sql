-- Say of which call of which run a row is.
SELECT run, call
FROM attempt
WHERE id = :id
