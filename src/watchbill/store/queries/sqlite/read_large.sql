-- Read one large body, or where its chunks are.
SELECT body, upload, size
FROM blob
WHERE run = :run
    AND n = :n
