-- Say which schema the store has.
SELECT value
FROM meta
WHERE key = 'schema'
