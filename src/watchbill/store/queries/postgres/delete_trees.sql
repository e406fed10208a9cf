-- Delete trees of runs that have ended, with all that belongs to them; gives how many runs.
WITH gone AS MATERIALIZED (
    SELECT num
    FROM watchbill.run
    WHERE num = ANY (:roots::bigint[])
        AND parent IS NULL
        AND status >= 10
    UNION ALL
    SELECT num
    FROM watchbill.run
    WHERE root = ANY (:roots::bigint[])
        AND parent IS NOT NULL
),
decisions AS (
    DELETE FROM watchbill.decision
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
attempts AS (
    DELETE FROM watchbill.attempt
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
logs AS (
    DELETE FROM watchbill.log
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
facts AS (
    DELETE FROM watchbill.fact
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
blobs AS (
    DELETE FROM watchbill.blob
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
chunks AS (
    DELETE FROM watchbill.chunk
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
uploads AS (
    DELETE FROM watchbill.upload
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
entries AS (
    DELETE FROM watchbill.journal
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
chains AS (
    DELETE FROM watchbill.chain
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
failed AS (
    DELETE FROM watchbill.failed_run
    WHERE run = ANY (ARRAY(SELECT num FROM gone))
),
runs AS (
    DELETE FROM watchbill.run
    WHERE num = ANY (ARRAY(SELECT num FROM gone))
        AND status >= 10
    RETURNING 1
)
SELECT count(*)
FROM runs
