-- Find rows that cannot be, among the next ones after a place.
SELECT wrong, id, run, run_id, call, fence, state, status IS NOT NULL
FROM (
    SELECT
        CASE
            -- A probe may be asked of what a run wanted no more before it ended; who leases it is not to stop it.
            WHEN status IS NULL OR (status >= 10 AND state < 4 AND NOT cancel AND kind <> 2) THEN 'row of a run that has ended'
            WHEN state = 1 AND coalesce(agent_state, 3) = 3 THEN 'row that nobody runs'
            WHEN watch_at IS NULL AND kind <> 1 AND (
                state = 2 OR (state = 1 AND NOT cancel) OR (state = 3 AND why IN ('backoff', 'settle'))
            ) THEN 'row that nobody looks at'
        END AS wrong,
        *
    FROM (
        SELECT
            attempt.*,
            (SELECT run.status FROM run WHERE run.num = attempt.run) AS status,
            (SELECT agent.state FROM agent WHERE agent.id = attempt.agent) AS agent_state
        FROM attempt
        WHERE id > :after
            AND id <= :last
    )
)
WHERE wrong IS NOT NULL
ORDER BY id
