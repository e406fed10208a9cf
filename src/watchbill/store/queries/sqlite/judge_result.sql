-- Set the result of a row that was judged in this transaction.
UPDATE attempt
SET result = :result
WHERE id = :id
