-- Read the breakers that a supervisor has to look at, with how many wait behind each, counted up to a limit.
SELECT
    gate.namespace, gate.name, gate.breaker,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM queue AS theirs
            CROSS JOIN attempt AS waiting
            WHERE theirs.namespace = gate.namespace
                AND 'uses:' || theirs.uses = gate.name
                AND waiting.queue = theirs.id
                AND waiting.state = 0
                AND waiting.held = 0
            LIMIT :most
        )
    ),
    :now
FROM gate
WHERE (gate.paused OR gate.state <> 0)
    AND gate.watch_at <= :now
ORDER BY gate.namespace, gate.name
