-- Read one gate, and count who runs behind it.
SELECT
    gate.at_once, gate.starts, gate.per, gate.paused, gate.tokens, gate.tokens_at, gate.said,
    CASE WHEN gate.at_once IS NULL THEN 0 ELSE (
        SELECT count(*)
        FROM attempt AS running
        CROSS JOIN queue AS theirs ON theirs.id = running.queue
        WHERE running.gate = :name
            AND running.state = 1
            AND theirs.namespace = :namespace
    ) END
FROM gate
WHERE gate.namespace = :namespace
    AND gate.name = :name
