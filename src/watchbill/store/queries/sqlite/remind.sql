-- Remind of a question, or of a call that waits for people, once.
UPDATE attempt
SET remind_at = NULL
WHERE id = :id
    AND remind_at = :remind_at
RETURNING run, call, incident
