-- Find which of these queues use a dependency that lets some start, one by one, and have somebody who waits.
SELECT
    (SELECT watchbill.at(:now::bigint)), its.id, its.namespace, gate.name, gate.paused, gate.breaker,
    coalesce((
        SELECT trying.fence = gate.canary_fence AND trying.state IN (:running::smallint, :failed::smallint)
        FROM watchbill.attempt_place AS trying
        WHERE trying.id = gate.canary
    ), false)
FROM (
    SELECT id, namespace, uses
    FROM watchbill.queue
    WHERE id = ANY (:queues::integer[])
        AND uses <> ''
) AS its
CROSS JOIN LATERAL (
    SELECT name, paused, breaker, canary, canary_fence
    FROM watchbill.gate
    WHERE gate.namespace = its.namespace
        AND gate.name = 'uses:' || its.uses
        AND gate.state = ANY (:passing::smallint[])
        AND NOT gate.paused
    LIMIT 1
) AS gate
CROSS JOIN LATERAL (
    SELECT 1
    FROM watchbill.attempt
    WHERE attempt.queue = its.id
        AND attempt.state = 0
        AND NOT attempt.held
    LIMIT 1
) AS waiting
ORDER BY its.id
