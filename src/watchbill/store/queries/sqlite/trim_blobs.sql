-- Delete the large bodies of a run's first entries before an entry, so many entries.
DELETE FROM blob
WHERE run = :run
    AND n IN (
        SELECT CAST(CAST(substr(body, 2) AS TEXT) AS INTEGER)
        FROM (
            SELECT body
            FROM journal
            WHERE run = :run
                AND seq < :before
                AND kind <> 10
            ORDER BY seq
            LIMIT :limit
        )
        WHERE length(body) < 22
            AND substr(body, 1, 1) = x'00'
    )
