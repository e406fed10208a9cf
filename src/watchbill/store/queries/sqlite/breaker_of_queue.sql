-- Name the gate of the dependency that a queue uses, and give its breaker, if it has one.
SELECT queue.namespace, 'uses:' || queue.uses, gate.breaker
FROM queue
LEFT JOIN gate ON gate.namespace = queue.namespace AND gate.name = 'uses:' || queue.uses
WHERE queue.id = :queue
    AND queue.uses <> ''
