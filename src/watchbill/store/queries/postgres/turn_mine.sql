-- Say whether all of them are held, and what time it is: asked once, by every part of the turn.
-- Also require the entries that the turn follows, one per run. A store that lost its newest entries gets no hole.
SELECT
    count(*) = cardinality(:shards::integer[])
    AND (
        SELECT count(*)
        FROM unnest(:follows_runs::bigint[], :follows_seqs::integer[]) AS wanted (run, seq)
        CROSS JOIN LATERAL (
            SELECT 1
            FROM watchbill.journal
            WHERE journal.run = wanted.run
                AND journal.seq = wanted.seq
        ) AS there
    ) = cardinality(:follows_runs::bigint[]) AS whole,
    (SELECT watchbill.at(:now::bigint)) AS now
FROM held
