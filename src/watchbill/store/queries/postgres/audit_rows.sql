-- Find rows that cannot be, among the next ones after a place; gives with each, or alone, how many those were, and the last.
WITH page AS MATERIALIZED (
    SELECT id, run, run_id, call, kind, state, fence, agent, cancel, why, watch_at
    FROM watchbill.attempt
    WHERE id > :after::bigint
    ORDER BY id
    LIMIT :limit::bigint
),
seen AS MATERIALIZED (
    SELECT
        page.*,
        (SELECT status FROM watchbill.run WHERE num = page.run) AS status,
        (SELECT state FROM watchbill.agent WHERE agent.id = page.agent) AS agent_state
    FROM page
),
orphan AS (
    SELECT
        CASE
            -- A probe may be asked of what a run wanted no more before it ended; who leases it is not to stop it.
            WHEN status IS NULL OR (status >= 10 AND state < 4 AND NOT cancel AND kind <> 2) THEN 'row of a run that has ended'
            WHEN state = 1 AND coalesce(agent_state, 3) = 3 THEN 'row that nobody runs'
            WHEN watch_at IS NULL AND kind <> 1 AND (
                state = 2 OR (state = 1 AND NOT cancel) OR (state = 3 AND why IN ('backoff', 'settle'))
            ) THEN 'row that nobody looks at'
        END AS wrong,
        seen.*
    FROM seen
)
SELECT
    (SELECT count(*) FROM page) AS rows,
    (SELECT max(id) FROM page) AS last,
    (SELECT watchbill.at(:now::bigint)) AS now,
    orphan.wrong, orphan.id, orphan.run, orphan.run_id, orphan.call, orphan.fence, orphan.state,
    orphan.status IS NOT NULL AS known
FROM (SELECT 1) AS once
LEFT JOIN orphan ON orphan.wrong IS NOT NULL
ORDER BY orphan.id
