-- Say that a scheduler is there and what its code knows; one that lasts for ever is not written again.
INSERT INTO scheduler (id, namespace, region, until, knows, info)
VALUES (:owner, :namespace, :region, :until, :knows, :info)
ON CONFLICT (id) DO UPDATE SET until = excluded.until, knows = excluded.knows, info = excluded.info
WHERE until <> excluded.until
    OR knows <> excluded.knows
    OR info <> excluded.info
