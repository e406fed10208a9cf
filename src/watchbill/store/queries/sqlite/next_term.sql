-- Draw a term: higher than every one before, in the whole store.
UPDATE meta
SET value = value + 1
WHERE key = 'term'
RETURNING value
