-- Read the chains of the newest runs before one that have a chain: what was decided, without what it says, and each link.
WITH these AS MATERIALIZED (
    SELECT chain.run, named.id, chain.last
    FROM watchbill.chain
    CROSS JOIN LATERAL (
        SELECT run.id
        FROM watchbill.run
        WHERE run.num = chain.run
            AND (run.namespace = :namespace) IS TRUE -- never found by it: it is found by its number
        LIMIT 1 -- so that each is looked up, and not all runs are gone through
    ) AS named
    WHERE chain.run < :before::bigint
        AND chain.last <> '' -- that goes
    ORDER BY chain.run DESC
    LIMIT :limit::bigint
)
SELECT
    these.run, these.id, these.last,
    decision.call, decision.fence, decision.n, decision.at, decision.actor, sha256(decision.body), decision.chain
FROM these
LEFT JOIN watchbill.decision ON decision.run = these.run
ORDER BY these.run DESC
