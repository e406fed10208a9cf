-- Insert a run that goes on from chosen entries of another one's journal, counted anew, behind a first one of its own if
-- it has one, with their large bodies; nothing when its id, or itself, is there, or the other one is not; nor, if that is
-- to belong to an incident, when it does not any more. Whoever else goes on with it at this moment is waited for first:
-- before the new run is written, or one who waits for its id would hold what we need.
WITH source AS MATERIALIZED (
    SELECT begun_at
    FROM watchbill.run
    WHERE num = :source::bigint
),
member AS MATERIALIZED (
    SELECT run, incident
    FROM watchbill.failed_run
    WHERE run = :source
    FOR UPDATE
),
made AS (
    INSERT INTO watchbill.run (
        num, shard, namespace, id, workflow, version, input, created_at, wake_at, priority, deadline, tags, root,
        begun_at, early, slot, parent_id, copied
    )
    SELECT
        :num::bigint, :shard::integer, :namespace::text, :id::text, :workflow::text, :version::integer, :input::bytea,
        watchbill.at(:now::bigint), watchbill.at(:now::bigint), :priority::integer, :deadline::bigint,
        string_to_array(:tags::text, chr(31)), :num::bigint, begun_at, true,
        :slot::bigint, :parent_id::text, :copied::integer
    FROM source
    WHERE (SELECT count(*) FROM member WHERE coalesce(incident = :member::bigint, :member IS NULL))
        >= CASE WHEN :member IS NULL THEN 0 ELSE 1 END
    ON CONFLICT DO NOTHING
    RETURNING num
),
chosen AS MATERIALIZED (
    SELECT
        made.num AS copy, entry.*,
        cardinality(:first::watchbill.journal_entry[]) + row_number() OVER (ORDER BY entry.seq) AS place
    FROM made
    CROSS JOIN watchbill.journal AS entry
    WHERE entry.run = :source
        AND entry.seq = ANY (:entries::integer[])
),
copied AS (
    INSERT INTO watchbill.journal (run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body)
    SELECT
        copy, place, kind, key, CASE WHEN NOT :loose::boolean THEN digest END, fence, outcome, agent, started_at, at, body
    FROM chosen
    UNION ALL
    SELECT first.*
    FROM made
    CROSS JOIN unnest(:first::watchbill.journal_entry[]) AS first
),
kept AS (
    INSERT INTO watchbill.blob (run, n, body, upload, size)
    SELECT made.num, large.n, large.body, large.upload, large.size
    FROM made
    CROSS JOIN watchbill.blob AS large
    WHERE large.run = :source
        AND large.n = ANY (ARRAY(SELECT watchbill.referred(body) FROM chosen))
    RETURNING upload
),
chunks AS (
    INSERT INTO watchbill.chunk (run, upload, n, body)
    SELECT made.num, chunk.upload, chunk.n, chunk.body
    FROM made
    CROSS JOIN watchbill.chunk
    WHERE chunk.run = :source
        AND chunk.upload = ANY (ARRAY(SELECT upload FROM kept))
),
own AS (
    INSERT INTO watchbill.blob (run, n, body)
    SELECT made.num, large.n, large.body
    FROM made
    CROSS JOIN unnest(:blob_ns::bigint[], :blob_bodies::bytea[]) AS large (n, body)
),
-- Somebody goes on with it: it needs nobody any more.
seen_to AS (
    DELETE FROM watchbill.failed_run
    WHERE run = (SELECT :source FROM made)
)
SELECT
    EXISTS (SELECT 1 FROM made) AS made,
    EXISTS (SELECT 1 FROM source) AND (:member IS NULL OR :member = (SELECT incident FROM member)) AS there
