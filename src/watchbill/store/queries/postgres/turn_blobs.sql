-- Keep large bodies beside their runs, in the transaction that refers to them.
INSERT INTO watchbill.blob (run, n, body)
SELECT *
FROM unnest(:blob_runs::bigint[], :blob_ns::bigint[], :blob_bodies::bytea[])
WHERE (SELECT whole FROM mine)
