-- Write down what somebody wants for all members of an open incident, unless another order is being carried out.
WITH asked AS MATERIALIZED (
    SELECT id, state, calls, runs, ordered_by, ordered = :body::bytea AND ordered_by = :actor::text AS same
    FROM watchbill.incident
    WHERE id = :incident::bigint
        AND (namespace = :namespace) IS TRUE -- never found by it: it is found by its number
    FOR UPDATE
),
done AS (
    UPDATE watchbill.incident
    SET
        ordered = :body, ordered_by = :actor, ordered_at = (SELECT watchbill.at(:now::bigint)),
        per_second = :per_second::integer, fed_at = NULL, fed_to = 0, ordered_as = :kind
    WHERE id = (
        SELECT id
        FROM asked
        WHERE state = 0
            AND CASE WHEN :kind::text = 'resolve' THEN calls ELSE runs END
    )
        AND ordered IS NULL
    RETURNING id
)
SELECT
    asked.state, asked.calls, asked.runs,
    EXISTS (SELECT 1 FROM done) OR coalesce(asked.same, false), asked.ordered_by
FROM asked
