-- Make the shards of a region and their leases, once.
WITH made AS (
    INSERT INTO watchbill.shard (namespace, region, n)
    SELECT :namespace::text, :region::text, n
    FROM generate_series(0, :count::integer - 1) AS n
    ON CONFLICT DO NOTHING
    RETURNING id
)
INSERT INTO watchbill.lease (role, shard)
SELECT 'scheduler', id
FROM made
