-- Say that a supervisor stands watch; gives the store's time, all of its way and region who do, by id, and all shards.
WITH gone AS (
    DELETE FROM watchbill.supervisor
    WHERE id = ANY (ARRAY(
        SELECT id
        FROM watchbill.supervisor
        WHERE until <= (SELECT watchbill.at(:now::bigint))
            AND id <> :id::bigint
        ORDER BY id
        FOR UPDATE SKIP LOCKED
    ))
),
here AS (
    INSERT INTO watchbill.supervisor (id, way, region, until, info, lag, listens)
    VALUES (
        :id::bigint, :way::text, :region::text,
        coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904), :info, :lag::bigint,
        :listens::boolean
    )
    ON CONFLICT (id) DO UPDATE
    SET until = excluded.until, lag = excluded.lag, listens = excluded.listens
    RETURNING id, info, lag
)
SELECT
    (SELECT watchbill.at(:now::bigint)) AS now,
    ARRAY(SELECT id FROM watchbill.shard ORDER BY id) AS shards,
    watcher.id, watcher.info, watcher.lag
FROM (
    SELECT id, info, lag
    FROM here
    UNION ALL
    SELECT id, info, lag
    FROM watchbill.supervisor
    WHERE way = :way::text
        AND region = :region::text
        AND until > (SELECT watchbill.at(:now::bigint))
        AND id <> :id::bigint
) AS watcher
ORDER BY watcher.id
