-- Read the next members of an incident that had failed by then and have not been told yet what somebody wants for them.
SELECT attempt.id, attempt.run, attempt.shard
FROM attempt
CROSS JOIN run ON run.num = attempt.run
WHERE attempt.incident = :incident
    AND attempt.id > :fed_to
    AND attempt.state = 3
    AND attempt.why IN ('quarantine', 'escalate', 'doubt')
    AND coalesce(attempt.ended_at, 0) <= :ordered_at
    AND run.status < 10
    AND NOT EXISTS (
        SELECT 1
        FROM fact
        WHERE fact.run = attempt.run
            AND fact.kind = 'resolve'
            AND fact.ref = printf('%x', attempt.id)
    )
ORDER BY attempt.id
LIMIT :limit
