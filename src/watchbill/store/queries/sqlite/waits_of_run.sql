-- Say what the ready rows of a run wait for: the needs of their queues, and their gates as they stand, with how many are
-- more urgent behind the same gate, and in the same queue, each counted up to a limit; to whom they are not given yet;
-- and, for those that have failed, how their dependencies stand.
SELECT
    mine.id, its.region, its.needs, its.uses, mine.step, mine.gate, gate.at_once, gate.starts, gate.per, coalesce(gate.paused, 0),
    coalesce(gate.tokens, 0.0), coalesce(gate.tokens_at, 0), coalesce(gate.said, 0),
    CASE WHEN mine.gate IS NULL THEN 0 ELSE (
        SELECT count(*)
        FROM attempt AS running
        CROSS JOIN queue AS theirs ON theirs.id = running.queue
        WHERE running.gate = mine.gate
            AND running.state = 1
            AND theirs.namespace = its.namespace
    ) END,
    CASE WHEN mine.gate IS NULL THEN 0 ELSE (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM queue AS theirs
            CROSS JOIN attempt AS waiting
            WHERE theirs.namespace = its.namespace
                AND theirs.limited
                AND waiting.queue = theirs.id
                AND waiting.gate = mine.gate
                AND waiting.state = 0
                AND waiting.held = 0
                AND waiting.gate IS NOT NULL
                AND (waiting.rank, waiting.id) < (mine.rank, mine.id)
            LIMIT :most
        )
    ) END,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM attempt AS earlier
            WHERE earlier.queue = mine.queue
                AND (earlier.alone OR earlier.losses >= 2) = mine.lonely
                AND earlier.state = 0
                AND earlier.held = 0
                AND earlier.rank <= mine.rank
                AND (earlier.rank, earlier.id) < (mine.rank, mine.id)
            LIMIT :most
        )
    ),
    mine.avoid, mine.avoid_until, mine.failures, theirs.breaker
FROM (
    SELECT id, queue, gate, rank, step, failures, (alone OR losses >= 2) AS lonely, avoid, avoid_until
    FROM attempt
    WHERE run = :run
        AND state = 0
        AND held = 0
        AND kind <> 1
    ORDER BY id
    LIMIT :limit
) AS mine
CROSS JOIN queue AS its ON its.id = mine.queue
LEFT JOIN gate ON gate.namespace = its.namespace AND gate.name = mine.gate
LEFT JOIN gate AS theirs
    ON mine.failures > 0 AND its.uses <> '' AND theirs.namespace = its.namespace AND theirs.name = 'uses:' || its.uses
ORDER BY mine.id
