-- Read runs that nothing moves; of those that have diverged, the decision that says how. What moves again is left out.
SELECT
    run.num, run.namespace, run.id, run.workflow, run.version, run.status, run.held,
    CASE WHEN run.status = 4 THEN (
        SELECT body
        FROM watchbill.decision
        WHERE decision.run = run.num
            AND decision.actor = 'scheduler'
        ORDER BY decision.id DESC
        LIMIT 1
    ) END
FROM watchbill.run
WHERE run.num = ANY (:nums::bigint[])
    AND (run.status = 4 OR substr(run.held, 1, 14) <> 'waits for code') IS TRUE -- never found by it: by their numbers
ORDER BY run.num
