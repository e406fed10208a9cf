-- Delete a run's first entries, so many, but not its last one: as long as the run is there, so is its result.
DELETE FROM journal
WHERE run = :run
    AND seq IN (
        SELECT seq
        FROM journal
        WHERE run = :run
            AND seq < (SELECT max(seq) FROM journal WHERE run = :run)
        ORDER BY seq
        LIMIT :limit
    )
