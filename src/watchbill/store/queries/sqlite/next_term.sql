-- Draw a term: higher than every one before, in the whole store, and than one that was seen.
UPDATE meta
SET value = max(value, :above) + 1
WHERE key = 'term'
RETURNING value
