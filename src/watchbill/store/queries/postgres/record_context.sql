-- Say what time it is, in which region a run lives, whether a scheduler serves that, and whether one of these, if any,
-- has its code.
SELECT
    (SELECT watchbill.at(:now::bigint)),
    home.region,
    knowing.heard IS NOT NULL,
    coalesce(knowing.heard, true)
FROM watchbill.shard AS home
CROSS JOIN LATERAL (
    SELECT bool_or(:workflow = ANY (scheduler.knows)) AS heard
    FROM watchbill.scheduler
    WHERE scheduler.namespace = home.namespace
        AND scheduler.region = home.region
        AND scheduler.until > (SELECT watchbill.at(:now::bigint))
) AS knowing
WHERE home.id = :shard::integer
