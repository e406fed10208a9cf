-- Say what the ready rows of a run wait for: the needs of their queues, and their gates as they stand, with how many are
-- more urgent behind the same gate, and in the same queue, each counted up to a limit; to whom they are not given yet;
-- and, for those that have failed, how their dependencies stand.
SELECT
    mine.id, its.region, its.needs, its.uses, mine.step, mine.gate, gate.at_once, gate.starts, gate.per, coalesce(gate.paused, false),
    coalesce(gate.tokens, 0), coalesce(gate.tokens_at, 0), coalesce(gate.said, 0),
    CASE WHEN mine.gate IS NULL THEN 0 ELSE (
        SELECT count(*)
        FROM watchbill.attempt_place AS running
        WHERE running.gate = mine.gate
            AND running.state = 1
            AND (SELECT namespace FROM watchbill.queue WHERE id = running.queue) = its.namespace
    ) END,
    CASE WHEN mine.gate IS NULL THEN 0 ELSE (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM watchbill.queue AS theirs
            CROSS JOIN LATERAL (
                SELECT 1
                FROM watchbill.attempt AS waiting
                WHERE waiting.queue::bigint = theirs.id
                    AND waiting.gate = mine.gate
                    AND waiting.state = 0
                    AND NOT waiting.held
                    AND waiting.gate IS NOT NULL
                    AND (waiting.rank, waiting.id) < (mine.rank, mine.id)
                LIMIT :most::bigint
            ) AS one
            WHERE theirs.namespace = its.namespace
                AND theirs.limited
            LIMIT :most::bigint
        ) AS counted
    ) END,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM watchbill.attempt AS earlier
            WHERE earlier.queue = mine.queue
                AND (earlier.alone OR earlier.losses >= 2) = mine.lonely
                AND earlier.state = 0
                AND NOT earlier.held
                AND (earlier.rank, earlier.id) < (mine.rank, mine.id)
            LIMIT :most::bigint
        ) AS urgent
    ),
    mine.avoid, mine.avoid_until, mine.failures, theirs.breaker
FROM (
    SELECT id, queue, gate, rank, step, failures, (alone OR losses >= 2) AS lonely, avoid, avoid_until
    FROM watchbill.attempt
    WHERE run = :run
        AND state = :ready::smallint
        AND NOT held
        AND kind <> 1
    ORDER BY id
    LIMIT :limit::bigint
) AS mine
CROSS JOIN LATERAL (SELECT namespace, region, needs, uses FROM watchbill.queue WHERE id = mine.queue LIMIT 1) AS its
LEFT JOIN LATERAL (
    SELECT * FROM watchbill.gate WHERE gate.namespace = its.namespace AND gate.name = mine.gate LIMIT 1
) AS gate ON true
LEFT JOIN LATERAL (
    SELECT breaker
    FROM watchbill.gate AS dependency
    WHERE mine.failures > 0
        AND its.uses <> ''
        AND dependency.namespace = its.namespace
        AND dependency.name = 'uses:' || its.uses
    LIMIT 1
) AS theirs ON true
ORDER BY mine.id
