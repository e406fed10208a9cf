-- Let a question that is still open, and has none, have an incident of its own number.
UPDATE attempt
SET incident = id
WHERE id = ?1
    AND kind = 1
    AND incident IS NULL
