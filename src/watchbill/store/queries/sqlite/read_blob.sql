-- Read one large body.
SELECT body
FROM blob
WHERE run = :run
    AND n = :n
