-- End what dead processes hold, at once and uncleanly: leases and agents keep their names, and have no time left.
WITH absent AS (
    DELETE FROM watchbill.scheduler
    WHERE id = ANY (:processes::bigint[])
    RETURNING id
),
ended AS (
    UPDATE watchbill.lease
    SET until = 0
    WHERE owner = ANY (:processes::bigint[])
        AND until > 0
    RETURNING owner
),
lost AS (
    UPDATE watchbill.agent
    SET state = 2, until = 0, gone_at = (SELECT watchbill.at(:now::bigint))
    WHERE id = ANY (:processes::bigint[])
        AND state = :alive::smallint
    RETURNING id
)
SELECT id FROM absent
UNION ALL
SELECT owner FROM ended
UNION ALL
SELECT id FROM lost
