-- Say which schema the store has; nothing when it says none.
SELECT value
FROM watchbill.meta
WHERE key = 'schema'
