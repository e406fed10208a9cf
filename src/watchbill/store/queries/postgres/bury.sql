-- End what dead processes hold, at once and uncleanly: leases and agents keep their names, and have no time left.
WITH absent AS (
    DELETE FROM watchbill.scheduler
    WHERE id = ANY (:processes::bigint[])
),
ended AS (
    UPDATE watchbill.lease
    SET until = 0
    WHERE owner = ANY (:processes::bigint[])
)
UPDATE watchbill.agent
SET state = 2, until = 0
WHERE id = ANY (:processes::bigint[])
    AND state = 1
