-- Write one chunk of an upload, unless it was discarded. Writing it again changes nothing.
-- The row of the upload is locked: whoever discards it waits, and then deletes this chunk, too.
WITH open AS MATERIALIZED (
    SELECT run, id
    FROM watchbill.upload
    WHERE run = :run::bigint
        AND id = :id::bigint
    FOR KEY SHARE
),
added AS (
    INSERT INTO watchbill.chunk (run, upload, n, body)
    SELECT run, id, :n::integer, :body::bytea
    FROM open
    ON CONFLICT DO NOTHING
)
SELECT EXISTS (SELECT 1 FROM open)
