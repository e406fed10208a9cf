-- Say whether all of them are held, and what time it is: asked once, by every part of the turn.
-- Also require the entries that the turn follows, one per run, or, of a run without entries, that it has begun. A store
-- that lost its newest commits gets no hole, and no row of a run that it lost.
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
            UNION ALL
            SELECT 1
            FROM watchbill.run
            WHERE wanted.seq = 0
                AND run.num = wanted.run
                AND run.status <> 0
        ) AS there
    ) = cardinality(:follows_runs::bigint[])
    -- Also the rows and facts whose outcomes it journals: else they would be taken in twice.
    AND (
        SELECT count(*)
        FROM unnest(:taken_finals::bigint[], :taken_fences::bigint[]) AS wanted (id, fence)
        CROSS JOIN LATERAL (
            SELECT 1
            FROM watchbill.attempt
            WHERE attempt.id = wanted.id
                AND attempt.fence = wanted.fence
                AND state >= :final::smallint
        ) AS there
    ) = cardinality(:taken_finals::bigint[])
    AND (
        SELECT count(*)
        FROM watchbill.fact
        WHERE id = ANY (:taken_facts::bigint[])
    ) = cardinality(:taken_facts::bigint[]) AS whole,
    (SELECT watchbill.at(:now::bigint)) AS now
FROM held
