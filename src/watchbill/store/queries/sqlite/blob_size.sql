-- Give how many bytes one large body has.
SELECT length(body)
FROM blob
WHERE run = :run
    AND n = :n
