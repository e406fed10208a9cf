-- Say what time it is, in which region a run lives, whether a scheduler serves that, and whether one of these, if any,
-- has its code.
SELECT
    (SELECT watchbill.at(:now::bigint)),
    home.region, there.serves, there.knows
FROM watchbill.shard AS home
CROSS JOIN LATERAL (
    SELECT
        count(*) > 0 AS serves,
        coalesce(bool_or(:workflow = ANY (scheduler.knows)), true) AS knows
    FROM watchbill.scheduler
    WHERE scheduler.namespace = home.namespace
        AND scheduler.region = home.region
        AND scheduler.until > (SELECT watchbill.at(:now::bigint))
) AS there
WHERE home.id = :shard::integer
