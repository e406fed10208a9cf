-- Remind of a question that is still open, once.
UPDATE attempt
SET remind_at = NULL
WHERE id = :id
    AND remind_at = :remind_at
RETURNING run, call
