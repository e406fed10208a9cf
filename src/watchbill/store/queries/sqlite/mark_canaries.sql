-- Say of rows that were leased just now that they try for all the others that use their dependency.
UPDATE attempt
SET why = 'canary'
WHERE id IN (SELECT value FROM json_each(:ids))
    AND state = 1
