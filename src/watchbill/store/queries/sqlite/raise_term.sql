-- Raise the term above every one that was drawn before the store was restored.
UPDATE meta
SET value = max(value + :least, :floor)
WHERE key = 'term'
RETURNING value
