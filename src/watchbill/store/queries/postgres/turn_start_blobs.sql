-- Keep the large inputs of runs that were really inserted.
INSERT INTO watchbill.blob (run, n, body)
SELECT large.run, large.n, large.body
FROM starts
CROSS JOIN unnest(:start_blob_runs::bigint[], :start_blob_ns::bigint[], :start_blob_bodies::bytea[])
    AS large (run, n, body)
WHERE large.run = starts.num
