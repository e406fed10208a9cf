-- Read what was decided about the runs of a namespace since a time, newest first, and in which state each is now.
SELECT
    decision.run, decision.call, decision.fence, decision.n, decision.actor, decision.body, decision.at, run.status
FROM decision INDEXED BY decision_at
CROSS JOIN run ON run.num = decision.run
WHERE decision.at >= :since
    AND run.namespace = :namespace
ORDER BY decision.at DESC, decision.rowid DESC
LIMIT :limit
