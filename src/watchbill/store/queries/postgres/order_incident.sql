-- Write down what somebody wants for all members of an open incident, unless another order is being carried out.
-- From then on nobody's time for a decision about them ends, also of those who are told later.
-- Says, too, whether it is the newest one of all, repeated: then nothing is written, whatever has become of it.
WITH asked AS MATERIALIZED (
    SELECT
        id, state, calls, runs, failed, ordered = :body::bytea AND ordered_by = :actor::text AS same,
        coalesce(order_no = :number::bigint, false) AS again
    FROM watchbill.incident
    WHERE id = :incident::bigint
        AND (namespace = :namespace) IS TRUE -- never found by it: it is found by its number
        AND NOT asks -- that is answered, by the same number
    FOR UPDATE
),
done AS (
    UPDATE watchbill.incident
    SET
        ordered = :body, ordered_by = :actor, ordered_at = (SELECT watchbill.at(:now::bigint)),
        per_second = :per_second::integer, fed_at = NULL, fed_to = 0, ordered_as = :kind, order_no = :number
    WHERE id = (
        SELECT id
        FROM asked
        WHERE state = 0
            AND NOT again
            AND CASE WHEN :failed::boolean THEN failed WHEN :kind::text = 'resolve' THEN calls ELSE runs END
    )
        AND ordered IS NULL
    RETURNING id
),
members AS MATERIALIZED (
    SELECT id
    FROM watchbill.attempt
    WHERE incident = (SELECT id FROM done)
        AND state = 3
        AND (why || '') IN ('quarantine', 'escalate', 'doubt')
    ORDER BY id
    FOR UPDATE
),
timeless AS (
    UPDATE watchbill.attempt
    SET watch_at = NULL, remind_at = NULL
    WHERE id = ANY (ARRAY(SELECT id FROM members))
)
SELECT
    asked.state, asked.calls, asked.runs, asked.failed,
    EXISTS (SELECT 1 FROM done) OR coalesce(asked.same, false), EXISTS (SELECT 1 FROM done), asked.again
FROM asked
