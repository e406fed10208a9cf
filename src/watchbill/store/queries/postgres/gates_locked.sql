-- Read gates that this transaction has locked, and count who runs behind them: nobody else can let anyone through now.
SELECT
    (SELECT watchbill.at(:now::bigint)), mine.place, gate.at_once, gate.starts, gate.per, gate.paused, gate.tokens,
    gate.tokens_at, gate.said,
    CASE WHEN gate.at_once IS NULL THEN 0 ELSE (
        SELECT count(*)
        FROM watchbill.attempt_place AS running
        WHERE running.gate = mine.name
            AND running.state = 1
            AND (SELECT namespace FROM watchbill.queue WHERE id = running.queue) = mine.namespace
    ) END
FROM unnest(:namespaces::text[], :names::text[]) WITH ORDINALITY AS mine (namespace, name, place)
JOIN watchbill.gate ON gate.namespace = mine.namespace AND gate.name = mine.name
