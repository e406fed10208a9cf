-- Count schedulers, agents and supervisors whose time has not ended, and give the microseconds until the last one's end.
SELECT count(*), coalesce(max(until) - (SELECT watchbill.at(:now::bigint)), 0)
FROM (
    SELECT until
    FROM watchbill.scheduler
    UNION ALL
    SELECT until
    FROM watchbill.agent
    WHERE state = 1
    UNION ALL
    SELECT until
    FROM watchbill.supervisor
    UNION ALL
    SELECT until
    FROM watchbill.lease
    WHERE owner IS NOT NULL
) AS present
WHERE until > (SELECT watchbill.at(:now::bigint))
