-- Tell a run what a person says about an item of its inbox, once; not what another one holds, unless that is wanted.
-- Says how the run stands, whether this is it, if it was before, and who holds the item.
WITH item AS MATERIALIZED (
    SELECT
        run,
        CASE
            WHEN claimed_by <> :actor::text AND claimed_until > (SELECT watchbill.at(:now::bigint)) AND NOT :force::boolean
                THEN claimed_by
        END AS holder
    FROM watchbill.attempt
    WHERE id = :item::bigint
        AND CASE :kind::text
            WHEN 'answer' THEN kind = 1
            ELSE kind <> 1 AND state = 3 AND why IN ('quarantine', 'escalate', 'doubt')
        END
),
asking AS MATERIALIZED (
    SELECT num, shard, status
    FROM watchbill.run
    WHERE num = (SELECT run FROM item)
        AND (namespace = :namespace) IS TRUE -- never found by it: it is found by its number
    FOR SHARE
),
told AS (
    INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
    SELECT shard, num, :kind, to_hex(:item), :actor, :body::bytea, (SELECT watchbill.at(:now::bigint))
    FROM asking
    CROSS JOIN item
    WHERE status < 10
        AND item.holder IS NULL
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
            AND fact.kind = :kind
            AND fact.ref = to_hex(:item)
            AND fact.actor = :actor
            AND fact.body = :body
    ) AS same,
    item.holder
FROM asking
CROSS JOIN item
