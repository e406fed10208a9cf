-- Read the gate of a dependency, and whether its canary runs, or was lost and is not judged yet.
SELECT
    gate.paused, gate.breaker,
    EXISTS (
        SELECT 1
        FROM attempt AS trying
        WHERE trying.id = gate.canary
            AND trying.fence = gate.canary_fence
            AND trying.state IN (1, 2)
    )
FROM gate
WHERE gate.namespace = :namespace
    AND gate.name = :name
