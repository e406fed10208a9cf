-- Give a bound that no time in this store exceeds.
SELECT value
FROM meta
WHERE key = 'time'
