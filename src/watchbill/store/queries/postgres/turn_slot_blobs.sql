-- Keep the large inputs of slots that were really started.
INSERT INTO watchbill.blob (run, n, body)
SELECT large.run, large.n, large.body
FROM slots
CROSS JOIN unnest(:slot_blob_runs::bigint[], :slot_blob_ns::bigint[], :slot_blob_bodies::bytea[])
    AS large (run, n, body)
WHERE large.run = slots.num
