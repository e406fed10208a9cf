-- Find the newest runs before one that have a chain, with the link that should be the last.
SELECT chain.run, run.id, chain.last
FROM chain
JOIN run ON run.num = chain.run
WHERE chain.run < :before
    AND chain.last <> x'' -- that goes
    AND run.namespace = :namespace
ORDER BY chain.run DESC
LIMIT :limit
