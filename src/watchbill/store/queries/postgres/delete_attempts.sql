-- Delete rows of a run, so many.
WITH gone AS (
    DELETE FROM watchbill.attempt
    WHERE ctid = ANY (ARRAY(
        SELECT ctid
        FROM watchbill.attempt
        WHERE run = :run::bigint
        LIMIT :limit::bigint
    ))
    RETURNING 1
)
SELECT count(*)
FROM gone
