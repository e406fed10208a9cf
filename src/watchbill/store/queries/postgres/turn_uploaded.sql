-- Make uploads that have all their chunks blobs of their runs.
INSERT INTO watchbill.blob (run, n, upload, size)
SELECT wanted.run, wanted.id, wanted.id, wanted.size
FROM unnest(:uploaded_runs::bigint[], :uploaded_ids::bigint[], :uploaded_sizes::bigint[], :uploaded_chunks::bigint[])
    AS wanted (run, id, size, chunks)
WHERE (SELECT whole FROM mine)
    AND wanted.chunks = (
        SELECT count(*)
        FROM watchbill.chunk
        WHERE chunk.run = wanted.run
            AND chunk.upload = wanted.id
    )
    AND (SELECT true FROM watchbill.upload WHERE upload.run = wanted.run AND upload.id = wanted.id)
RETURNING n
