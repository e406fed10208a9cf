-- Read the gates of a namespace, by name, with how many run and wait behind each; those who wait are counted up to a limit.
SELECT
    gate.name, gate.at_once, gate.starts, gate.per, gate.paused, gate.tokens, gate.tokens_at, gate.said,
    (
        SELECT count(*)
        FROM watchbill.attempt_place AS running
        WHERE running.gate = gate.name
            AND running.state = 1
            AND (SELECT namespace FROM watchbill.queue WHERE id = running.queue) = gate.namespace
    ),
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM watchbill.queue AS theirs
            CROSS JOIN LATERAL (
                SELECT 1
                FROM watchbill.attempt AS waiting
                WHERE waiting.queue::bigint = theirs.id
                    AND waiting.gate = gate.name
                    AND waiting.state = 0
                    AND NOT waiting.held
                    AND waiting.gate IS NOT NULL
                LIMIT :most::bigint
            ) AS one
            WHERE theirs.namespace = gate.namespace
                AND theirs.limited
            LIMIT :most::bigint
        ) AS counted
    ),
    (SELECT watchbill.at(:now::bigint))
FROM watchbill.gate
WHERE gate.namespace = :namespace
ORDER BY gate.name
