-- Delete a run's first entries, so many, but not its last one: as long as the run is there, so is its result.
WITH first AS MATERIALIZED (
    SELECT seq, watchbill.referred(body) AS n
    FROM watchbill.journal
    WHERE run = :run::bigint
        AND seq < (SELECT max(seq) FROM watchbill.journal WHERE run = :run)
    ORDER BY seq
    LIMIT :limit::bigint
),
blobs AS (
    DELETE FROM watchbill.blob
    WHERE run = :run
        AND n = ANY (ARRAY(SELECT n FROM first WHERE n IS NOT NULL))
    RETURNING 1
),
gone AS (
    DELETE FROM watchbill.journal
    WHERE run = :run
        AND seq = ANY (ARRAY(SELECT seq FROM first))
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM blobs)
