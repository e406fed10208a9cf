-- Read decisions that are not linked yet, oldest first, and the last links of their runs.
SELECT
    decision.run, decision.call, decision.fence, decision.n, decision.at, decision.actor, decision.body, chain.last
FROM decision
LEFT JOIN chain ON chain.run = decision.run
WHERE decision.chain IS NULL
    AND chain.last IS NOT x'' -- that goes
ORDER BY decision.rowid
LIMIT :limit
