-- Delete the first entries of runs before an entry of each, so many. That a deadline has passed (kind 10) still counts.
WITH old AS MATERIALIZED (
    SELECT entry.ctid AS place, entry.run, entry.n
    FROM unnest(:runs::bigint[], :befores::integer[]) AS wanted (run, before)
    CROSS JOIN LATERAL (
        SELECT journal.ctid, journal.run, watchbill.referred(body) AS n
        FROM watchbill.journal
        WHERE journal.run = wanted.run
            AND seq < wanted.before
            AND kind <> 10
        ORDER BY seq
        LIMIT :limit::bigint
    ) AS entry
    LIMIT :limit::bigint
),
blobs AS (
    DELETE FROM watchbill.blob
    WHERE ctid = ANY (ARRAY(
        SELECT large.ctid
        FROM old
        CROSS JOIN LATERAL (SELECT ctid FROM watchbill.blob WHERE run = old.run AND n = old.n LIMIT 1) AS large
        WHERE old.n IS NOT NULL
    ))
),
gone AS (
    DELETE FROM watchbill.journal
    WHERE ctid = ANY (ARRAY(SELECT place FROM old))
    RETURNING 1
)
SELECT count(*)
FROM gone
