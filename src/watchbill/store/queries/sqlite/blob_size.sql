-- Give how many bytes one large body has.
SELECT coalesce(size, length(body))
FROM blob
WHERE run = :run
    AND n = :n
