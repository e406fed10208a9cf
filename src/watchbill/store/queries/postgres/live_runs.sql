-- Read the numbers of runs that a takeover must load, in order, a page at a time.
SELECT live.num
FROM unnest(:shards::integer[]) AS mine (shard)
CROSS JOIN LATERAL (
    SELECT num
    FROM watchbill.run
    WHERE run.shard = mine.shard
        AND status IN (0, 1, 3, 4)
        AND (status <> 0 OR (:due::boolean AND wake_at <= (SELECT watchbill.at(:now::bigint))))
        AND num + 0 > :after::bigint
        AND (:known::text[] IS NULL OR workflow || '@' || version = ANY (:known))
    ORDER BY num + 0
    LIMIT :limit::bigint
) AS live
ORDER BY live.num
LIMIT :limit::bigint
