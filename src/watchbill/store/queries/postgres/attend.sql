-- Say that a scheduler is there; gives all who are, by id, and whether that is news. Those long gone are forgotten.
WITH known AS MATERIALIZED (
    SELECT id
    FROM watchbill.scheduler
    WHERE id = :owner
        AND namespace = :namespace
        AND region = :region
        AND until > (SELECT watchbill.at(:now::bigint))
        AND knows = :knows
        AND info = :info
),
here AS (
    INSERT INTO watchbill.scheduler (id, namespace, region, until, knows, info, listens)
    VALUES (
        :owner, :namespace, :region,
        coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904), :knows, :info,
        :listens::boolean
    )
    ON CONFLICT (id) DO UPDATE
    SET until = excluded.until, knows = excluded.knows, info = excluded.info, listens = excluded.listens
    RETURNING id, knows, info
),
gone AS (
    -- Not those that still hold a shard: a neighbour may prove their death.
    DELETE FROM watchbill.scheduler
    WHERE id = ANY (ARRAY(
        SELECT id
        FROM watchbill.scheduler AS absent
        WHERE until <= (SELECT watchbill.at(:now::bigint))
            AND id <> :owner
            AND NOT EXISTS (SELECT 1 FROM watchbill.lease WHERE lease.owner = absent.id)
        ORDER BY id
        FOR UPDATE SKIP LOCKED
    ))
)
SELECT NOT EXISTS (SELECT 1 FROM known) AS news, id, knows, info
FROM (
    SELECT id, knows, info
    FROM here
    UNION ALL
    SELECT id, knows, info
    FROM watchbill.scheduler
    WHERE namespace = :namespace
        AND region = :region
        AND until > (SELECT watchbill.at(:now::bigint))
        AND id <> :owner
) AS member
ORDER BY id
