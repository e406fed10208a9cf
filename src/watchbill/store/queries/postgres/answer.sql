-- Tell a run the answer to its question, once; says how the run stands, whether this is the answer, and if it was before.
WITH asking AS MATERIALIZED (
    SELECT num, shard, status
    FROM watchbill.run
    WHERE num = (SELECT run FROM watchbill.attempt WHERE id = :question::bigint AND kind = 1)
        AND (namespace = :namespace) IS TRUE -- never found by it: it is found by its number
    FOR SHARE
),
told AS (
    INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
    SELECT shard, num, 'answer', to_hex(:question), :actor::text, :body::bytea, (SELECT watchbill.at(:now::bigint))
    FROM asking
    WHERE status < 10
    ON CONFLICT (run, kind, ref) DO NOTHING
    RETURNING run
)
SELECT
    asking.status,
    EXISTS (SELECT 1 FROM told) AS new,
    EXISTS (
        SELECT 1
        FROM watchbill.fact
        WHERE fact.run = asking.num
            AND fact.kind = 'answer'
            AND fact.ref = to_hex(:question)
            AND fact.actor = :actor
            AND fact.body = :body
    ) AS same
FROM asking
