-- Tell a run what a person says about an item of its inbox, once; not what another one holds, unless that is wanted.
-- From then on nobody's time for a decision ends: who was faster, this or the end of that time, is told by the row's lock.
-- Says how the run stands, whether this is it, if it was before, and who holds the item.
WITH item AS MATERIALIZED (
    SELECT
        id,
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
-- Runs are locked before rows, as in every turn.
here AS MATERIALIZED (
    SELECT id
    FROM watchbill.attempt
    WHERE id = (SELECT item.id FROM item CROSS JOIN asking)
        AND (:kind = 'answer' OR (state = 3 AND why IN ('quarantine', 'escalate', 'doubt')))
    FOR UPDATE
),
told AS (
    INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
    SELECT shard, num, :kind, to_hex(:item), :actor, :body::bytea, (SELECT watchbill.at(:now::bigint))
    FROM asking
    CROSS JOIN item
    CROSS JOIN here
    WHERE status < 10
        AND item.holder IS NULL
    ON CONFLICT (run, kind, ref) DO NOTHING
    RETURNING run
),
timeless AS (
    UPDATE watchbill.attempt
    SET watch_at = NULL, remind_at = NULL
    WHERE id = (SELECT here.id FROM here CROSS JOIN told)
        AND :kind = 'resolve'
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
CROSS JOIN here
