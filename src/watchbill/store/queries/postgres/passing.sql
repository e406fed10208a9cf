-- Find which of these queues use a dependency that lets some start, one by one, and have somebody who waits; or one that
-- is well, and have somebody who has failed before.
SELECT
    (SELECT watchbill.at(:now::bigint)), its.id, its.namespace, 'uses:' || its.uses, false, gate.breaker,
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
LEFT JOIN LATERAL (
    SELECT paused, state, breaker, canary, canary_fence
    FROM watchbill.gate
    WHERE gate.namespace = its.namespace
        AND gate.name = 'uses:' || its.uses
    LIMIT 1
) AS gate ON true
LEFT JOIN LATERAL (
    SELECT true AS some
    FROM watchbill.attempt
    WHERE gate.state = ANY (:passing::smallint[])
        AND attempt.queue = its.id
        AND attempt.state = 0
        AND NOT attempt.held
    LIMIT 1
) AS waiting ON true
LEFT JOIN LATERAL (
    SELECT true AS some
    FROM watchbill.attempt
    WHERE coalesce(gate.state, 0) = 0
        AND attempt.queue = its.id
        AND attempt.state = 0
        AND NOT attempt.held
        AND attempt.failures > 0
    LIMIT 1
) AS failed ON true
WHERE NOT coalesce(gate.paused, false)
    AND (waiting.some OR failed.some)
ORDER BY its.id
