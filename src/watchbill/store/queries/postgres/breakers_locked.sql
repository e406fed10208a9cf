-- Read the gates of dependencies that this transaction has locked, and whether their canary runs, or was lost and is not
-- judged yet: nobody else can start one.
SELECT
    (SELECT watchbill.at(:now::bigint)), mine.place, gate.paused, gate.breaker,
    coalesce((
        SELECT trying.fence = gate.canary_fence AND trying.state IN (:running::smallint, :failed::smallint)
        FROM watchbill.attempt_place AS trying
        WHERE trying.id = gate.canary
    ), false)
FROM unnest(:namespaces::text[], :names::text[]) WITH ORDINALITY AS mine (namespace, name, place)
JOIN watchbill.gate ON gate.namespace = mine.namespace AND gate.name = mine.name
