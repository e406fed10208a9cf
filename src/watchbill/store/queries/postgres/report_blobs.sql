-- Keep the large bodies of those reports that were accepted.
INSERT INTO watchbill.blob (run, n, body)
SELECT accepted.run, large.n, large.body
FROM accepted
CROSS JOIN unnest(:blob_ids::bigint[], :blob_fences::bigint[], :blob_ns::bigint[], :blob_bodies::bytea[])
    AS large (id, fence, n, body)
WHERE large.id = accepted.id
    AND large.fence = accepted.fence
