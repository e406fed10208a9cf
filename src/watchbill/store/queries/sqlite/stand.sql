-- Say that a supervisor stands watch; one that lasts for ever is written again only when it was late.
INSERT INTO supervisor (id, way, region, until, info, lag)
VALUES (:id, :way, :region, :until, :info, :lag)
ON CONFLICT (id) DO UPDATE SET until = excluded.until, lag = excluded.lag
WHERE until <> excluded.until
    OR lag <> excluded.lag
