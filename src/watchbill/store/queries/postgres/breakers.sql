-- Read the breakers that a supervisor has to look at, with how many wait behind each, counted up to a limit.
SELECT
    gate.namespace, gate.name, gate.breaker,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM watchbill.queue AS theirs
            CROSS JOIN LATERAL (
                SELECT 1
                FROM watchbill.attempt_place AS waiting
                WHERE waiting.queue = theirs.id
                    AND waiting.state = 0
                    AND NOT waiting.held
                LIMIT :most::bigint
            ) AS one
            WHERE theirs.namespace = gate.namespace
                AND 'uses:' || theirs.uses = gate.name
            LIMIT :most::bigint
        ) AS counted
    ),
    (SELECT watchbill.at(:now::bigint))
FROM watchbill.gate
WHERE (gate.paused OR gate.state <> 0)
    AND gate.watch_at <= (SELECT watchbill.at(:now::bigint))
ORDER BY gate.namespace || '', gate.name || ''
