-- Say that a scheduler is there; gives all who are, by id.
WITH here AS (
    INSERT INTO watchbill.scheduler (id, namespace, region, until, knows, info)
    VALUES (
        :owner, :namespace, :region,
        coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904), :knows, :info
    )
    ON CONFLICT (id) DO UPDATE
    SET until = excluded.until, knows = excluded.knows, info = excluded.info
    RETURNING id, knows, info
)
SELECT id, knows, info
FROM here
UNION ALL
SELECT id, knows, info
FROM watchbill.scheduler
WHERE namespace = :namespace
    AND region = :region
    AND until > (SELECT watchbill.at(:now::bigint))
    AND id <> :owner
ORDER BY id
