-- Find live runs that nobody will drive, among the next ones after a place; gives with each, or alone, how many those were.
-- Shards that nobody can take are looked for among all, and one run of each is named: there are few.
WITH page AS MATERIALIZED (
    SELECT num, shard, id, status, wake_at, paused, held
    FROM watchbill.run
    WHERE (shard, num + 0) > (:after_shard::integer, :after_run::bigint)
        AND status IN (0, 1, 3, 4)
    ORDER BY shard, num + 0
    LIMIT :limit::bigint
),
homeless AS MATERIALIZED (
    SELECT live.num, live.id, live.status
    FROM watchbill.shard
    CROSS JOIN LATERAL (
        (
            SELECT num, id, status
            FROM watchbill.run
            WHERE run.shard = shard.id
                AND status IN (0, 1, 3, 4)
            ORDER BY shard, num + 0
            LIMIT 1
        )
        UNION ALL
        (
            SELECT num, id, status
            FROM watchbill.run
            WHERE run.shard = shard.id
                AND status IN (0, 2)
            ORDER BY shard, wake_at
            LIMIT 1
        )
        LIMIT 1
    ) AS live
    WHERE shard.id <> ALL (ARRAY(SELECT lease.shard FROM watchbill.lease WHERE lease.role = 'scheduler'))
),
orphan AS (
    SELECT 'run in a shard that nobody can take' AS wrong, num, id, status
    FROM homeless
    UNION ALL
    SELECT 'run without a time to begin', num, id, status
    FROM page
    WHERE status = 0
        AND wake_at IS NULL
        AND NOT paused
        AND held IS NULL
)
SELECT
    (SELECT count(*) FROM page) AS runs,
    (SELECT shard FROM page ORDER BY shard DESC, num DESC LIMIT 1) AS last_shard,
    (SELECT num FROM page ORDER BY shard DESC, num DESC LIMIT 1) AS last_run,
    orphan.wrong, orphan.num, orphan.id, orphan.status
FROM (SELECT 1) AS once
LEFT JOIN orphan ON true
ORDER BY orphan.num
