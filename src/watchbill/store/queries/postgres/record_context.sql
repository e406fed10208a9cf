-- Say what time it is, in which region a run lives, whether a scheduler serves that, and whether one of these, if any,
-- has its code.
SELECT
    (SELECT watchbill.at(:now::bigint)),
    home.region,
    count(scheduler.id) > 0,
    coalesce(bool_or(:workflow = ANY (scheduler.knows)), true)
FROM watchbill.shard AS home
LEFT JOIN watchbill.scheduler ON scheduler.namespace = home.namespace
    AND scheduler.region = home.region
    AND scheduler.until > (SELECT watchbill.at(:now::bigint))
WHERE home.id = :shard::integer
GROUP BY home.region
