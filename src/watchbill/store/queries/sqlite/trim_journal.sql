-- Delete a run's first entries before an entry, so many. That its deadline has passed (kind 10) still counts.
DELETE FROM journal
WHERE run = :run
    AND seq IN (
        SELECT seq
        FROM journal
        WHERE run = :run
            AND seq < :before
            AND kind <> 10
        ORDER BY seq
        LIMIT :limit
    )
