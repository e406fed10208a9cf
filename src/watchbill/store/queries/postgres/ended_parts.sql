-- Read entries that ended a part long ago, oldest first, from behind a place on, with the code of their runs.
SELECT entry.at, entry.run, entry.seq, home.namespace, home.workflow, home.version, home.open
FROM (
    SELECT at, run, seq
    FROM watchbill.journal
    WHERE kind = 9
        AND at <= (SELECT watchbill.at(:now::bigint)) - :age::bigint
        AND (at, run, seq) > (:after::bigint, :after_run::bigint, :after_seq::integer)
    ORDER BY at, run, seq
    LIMIT :limit::bigint
) AS entry
CROSS JOIN LATERAL (
    SELECT namespace, workflow, version, status < 10 AS open
    FROM watchbill.run
    WHERE num = entry.run
    LIMIT 1
) AS home
ORDER BY entry.at, entry.run, entry.seq
