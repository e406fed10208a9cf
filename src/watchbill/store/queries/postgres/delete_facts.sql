-- Delete what a run was told, so many.
WITH gone AS (
    DELETE FROM watchbill.fact
    WHERE ctid = ANY (ARRAY(
        SELECT ctid
        FROM watchbill.fact
        WHERE run = :run::bigint
        LIMIT :limit::bigint
    ))
    RETURNING 1
)
SELECT count(*)
FROM gone
