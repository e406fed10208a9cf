-- Read entries that ended a part long ago, oldest first, from behind a place on, with the code of their runs.
SELECT entry.at, entry.run, entry.seq, run.namespace, run.workflow, run.version, run.status < 10
FROM journal AS entry
CROSS JOIN run ON run.num = entry.run
WHERE entry.kind = 9
    AND entry.at <= :before
    AND (entry.at, entry.run, entry.seq) > (:after, :after_run, :after_seq)
ORDER BY entry.at, entry.run, entry.seq
LIMIT :limit
