-- Find which of these queues use a dependency that lets some start, one by one, and have somebody who waits; or one that
-- is well, and have somebody who has failed before.
SELECT
    its.id, its.namespace, 'uses:' || its.uses, coalesce(gate.paused, 0), gate.breaker,
    EXISTS (
        SELECT 1
        FROM attempt AS trying
        WHERE trying.id = gate.canary
            AND trying.fence = gate.canary_fence
            AND trying.state IN (1, 2)
    )
FROM json_each(:queues) AS mine
CROSS JOIN queue AS its ON its.id = mine.value
LEFT JOIN gate ON gate.namespace = its.namespace AND gate.name = 'uses:' || its.uses
WHERE its.uses <> ''
    AND NOT coalesce(gate.paused, 0)
    AND CASE
        WHEN gate.state IN (2, 3) THEN EXISTS (
            SELECT 1
            FROM attempt
            WHERE attempt.queue = its.id
                AND attempt.state = 0
                AND attempt.held = 0
        )
        WHEN coalesce(gate.state, 0) = 0 THEN EXISTS (
            SELECT 1
            FROM attempt
            WHERE attempt.queue = its.id
                AND attempt.state = 0
                AND attempt.held = 0
                AND attempt.failures > 0
        )
        ELSE 0
    END
