-- Delete the last words of a run's attempts, so many.
WITH gone AS (
    DELETE FROM watchbill.log
    WHERE ctid = ANY (ARRAY(
        SELECT ctid
        FROM watchbill.log
        WHERE run = :run::bigint
        LIMIT :limit::bigint
    ))
    RETURNING 1
)
SELECT count(*)
FROM gone
