-- Delete what was decided about a run, so many.
WITH gone AS (
    DELETE FROM watchbill.decision
    WHERE ctid = ANY (ARRAY(
        SELECT ctid
        FROM watchbill.decision
        WHERE run = :run::bigint
        LIMIT :limit::bigint
    ))
    RETURNING 1
)
SELECT count(*)
FROM gone
