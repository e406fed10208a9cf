-- Copy the large bodies that chosen entries refer to.
INSERT INTO blob (run, n, body, upload, size)
SELECT :run, n, body, upload, size
FROM blob
WHERE run = :source
    AND n IN (
        SELECT CAST(CAST(substr(entry.body, 2) AS TEXT) AS INTEGER)
        FROM journal AS entry
        WHERE entry.run = :source
            AND entry.seq IN (SELECT value FROM json_each(:entries))
            AND length(entry.body) < 22
            AND substr(entry.body, 1, 1) = x'00'
    )
