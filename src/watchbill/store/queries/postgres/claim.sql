-- Let somebody hold an item for a while, unless another one does; says who holds it until when, and writes it down.
WITH item AS MATERIALIZED (
    SELECT id, run, call, claimed_by, claimed_until
    FROM watchbill.attempt
    WHERE id = :item::bigint
        AND (kind = 1 OR (state = 3 AND why IN ('quarantine', 'escalate', 'doubt')))
        AND EXISTS (
            SELECT 1
            FROM watchbill.run
            WHERE run.num = attempt.run
                AND (run.namespace = :namespace) IS TRUE -- never found by it: it is found by its number
                AND run.status < 10
        )
    FOR UPDATE
),
free AS MATERIALIZED (
    SELECT *
    FROM item
    WHERE claimed_by IS NULL
        OR claimed_by = :actor::text
        OR claimed_until <= (SELECT watchbill.at(:now::bigint))
),
claimed AS (
    UPDATE watchbill.attempt
    SET claimed_by = :actor, claimed_until = (SELECT watchbill.at(:now::bigint)) + :lasting::bigint
    WHERE id = (SELECT id FROM free)
    RETURNING claimed_by, claimed_until
),
reasons AS (
    INSERT INTO watchbill.decision (run, call, fence, n, at, actor, body)
    SELECT run, call, :decision::bigint, 0, (SELECT watchbill.at(:now::bigint)), :actor, :body::bytea
    FROM free
    WHERE claimed_by IS DISTINCT FROM :actor
        OR claimed_until <= (SELECT watchbill.at(:now::bigint))
    ON CONFLICT DO NOTHING
)
SELECT claimed_by, claimed_until
FROM claimed
UNION ALL
SELECT claimed_by, claimed_until
FROM item
WHERE NOT EXISTS (SELECT 1 FROM free)
