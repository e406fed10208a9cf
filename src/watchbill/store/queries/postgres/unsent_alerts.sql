-- Count the alerts of a namespace that are tried again, and those that were given up of late.
SELECT
    count(*) FILTER (WHERE alert.state = 0 AND alert.tries > 0),
    count(*) FILTER (
        WHERE alert.state = 2
            AND alert.due_at > (SELECT watchbill.at(:now::bigint)) - :given_up_within::bigint
    )
FROM watchbill.alert
JOIN watchbill.incident ON incident.id = alert.incident
WHERE incident.namespace = :namespace
    AND alert.state IN (0, 2)
