-- Read what was decided about the runs of a namespace since a time, newest first, and in which state each is now.
SELECT
    decision.run, decision.call, decision.fence, decision.n, decision.actor, decision.body, decision.at, run.status
FROM watchbill.decision
CROSS JOIN LATERAL (
    SELECT status, namespace
    FROM watchbill.run
    WHERE run.num = decision.run
    LIMIT 1
) AS run
WHERE decision.at >= :since::bigint
    AND run.namespace = :namespace
ORDER BY decision.at DESC, decision.id DESC
LIMIT :limit::bigint
