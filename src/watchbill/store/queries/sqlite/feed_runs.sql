-- Read the next runs of an incident that have not been told yet what somebody wants for them.
SELECT run.num, run.shard
FROM run
WHERE run.incident = :incident
    AND run.num > :fed_to
    AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
ORDER BY run.num
LIMIT :limit
