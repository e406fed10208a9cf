-- Read decisions that are not linked yet, oldest first, without what they say; and the last links of their runs.
SELECT
    decision.run, decision.call, decision.fence, decision.n, decision.at, decision.actor, sha256(decision.body),
    chain.last
FROM watchbill.decision
LEFT JOIN LATERAL (
    SELECT last
    FROM watchbill.chain
    WHERE chain.run = decision.run
    LIMIT 1 -- so that each is looked up, and not all chains are gone through
) AS chain ON true
WHERE decision.chain IS NULL
    AND chain.last IS DISTINCT FROM '' -- that goes
ORDER BY decision.id
LIMIT :limit::bigint
