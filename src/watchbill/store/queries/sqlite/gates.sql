-- Read the gates of a namespace, by name, with how many run and wait behind each; those who wait are counted up to a limit.
SELECT
    gate.name, gate.at_once, gate.starts, gate.per, gate.paused, gate.tokens, gate.tokens_at, gate.said,
    (
        SELECT count(*)
        FROM attempt AS running
        CROSS JOIN queue AS theirs ON theirs.id = running.queue
        WHERE running.gate = gate.name
            AND running.state = 1
            AND theirs.namespace = gate.namespace
    ),
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM queue AS theirs
            CROSS JOIN attempt AS waiting
            WHERE theirs.namespace = gate.namespace
                AND theirs.limited
                AND waiting.queue = theirs.id
                AND waiting.gate = gate.name
                AND waiting.state = 0
                AND waiting.held = 0
                AND waiting.gate IS NOT NULL
            LIMIT :most
        )
    )
FROM gate
WHERE gate.namespace = :namespace
ORDER BY gate.name
