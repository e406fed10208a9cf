-- Begin an upload, only under a term that is held. Beginning it again under the same term changes nothing.
WITH held AS MATERIALIZED (
    SELECT shard
    FROM watchbill.lease
    WHERE role = 'scheduler'
        AND shard = :shard::integer
        AND owner = :owner
        AND term = :term::bigint
    FOR SHARE
),
begun AS (
    INSERT INTO watchbill.upload (run, id, shard, term)
    SELECT :run::bigint, :id::bigint, shard, :term
    FROM held
    ON CONFLICT DO NOTHING
)
SELECT
    EXISTS (SELECT 1 FROM held)
    AND NOT EXISTS (SELECT 1 FROM watchbill.upload WHERE run = :run AND id = :id AND term <> :term)
