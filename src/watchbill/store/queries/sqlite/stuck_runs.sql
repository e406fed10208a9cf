-- Read runs that nothing moves and that belong to no incident; of those that have diverged, the decision that says how.
SELECT
    run.num, run.namespace, run.id, run.workflow, run.version, run.status, run.held,
    CASE WHEN run.status = 4 THEN (
        SELECT body
        FROM decision
        WHERE decision.run = run.num
            AND decision.actor = 'scheduler'
        ORDER BY decision.rowid DESC
        LIMIT 1
    ) END
FROM run
WHERE run.incident IS NULL
    AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code')
ORDER BY run.num
LIMIT :limit
