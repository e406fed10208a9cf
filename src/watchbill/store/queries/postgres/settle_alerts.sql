-- Write down what became of tries to send alerts.
UPDATE watchbill.alert
SET state = tried.state, due_at = (SELECT watchbill.at(:now::bigint)) + tried.delay
FROM unnest(:incidents::bigint[], :kinds::smallint[], :routes::text[], :states::smallint[], :delays::bigint[])
    AS tried (incident, kind, route, state, delay)
WHERE alert.incident = tried.incident
    AND alert.kind = tried.kind
    AND alert.route = tried.route
    AND alert.state = :due::smallint
