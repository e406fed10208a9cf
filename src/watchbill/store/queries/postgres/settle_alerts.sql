-- Write down what became of tries to send alerts. Of what nobody could be told that it is open, nothing else is told.
WITH settled AS (
    UPDATE watchbill.alert
    SET state = tried.state, due_at = (SELECT watchbill.at(:now::bigint)) + tried.delay
    FROM unnest(:incidents::bigint[], :kinds::smallint[], :routes::text[], :states::smallint[], :delays::bigint[])
        AS tried (incident, kind, route, state, delay)
    WHERE alert.incident = tried.incident
        AND alert.kind = tried.kind
        AND alert.route = tried.route
        AND alert.state = :due::smallint
    RETURNING alert.incident, alert.kind, alert.route, alert.state
)
UPDATE watchbill.alert
SET state = settled.state
FROM settled
WHERE settled.kind = 0
    AND settled.state = :given_up::smallint
    AND alert.incident = settled.incident
    AND alert.kind > 0
    AND alert.route = settled.route
    AND alert.state = :due
