-- Find which of these queues use a dependency that lets some start, one by one, and have somebody who waits.
SELECT
    its.id, its.namespace, gate.name, gate.paused, gate.breaker,
    EXISTS (
        SELECT 1
        FROM attempt AS trying
        WHERE trying.id = gate.canary
            AND trying.fence = gate.canary_fence
            AND trying.state IN (1, 2)
    )
FROM json_each(:queues) AS mine
CROSS JOIN queue AS its ON its.id = mine.value
CROSS JOIN gate ON gate.namespace = its.namespace AND gate.name = 'uses:' || its.uses
WHERE its.uses <> ''
    AND gate.state IN (2, 3)
    AND NOT gate.paused
    AND EXISTS (
        SELECT 1
        FROM attempt
        WHERE attempt.queue = its.id
            AND attempt.state = 0
            AND attempt.held = 0
    )
