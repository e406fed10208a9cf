-- Find a run that nothing moves, as it was seen, and that belongs to no incident.
SELECT 1
FROM run
WHERE run.num = ?1
    AND run.status = ?2
    AND run.held IS ?3
    AND run.incident IS NULL
    AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
