-- Count the alerts of a namespace that are tried again, and those that were given up of late.
SELECT
    coalesce(sum(alert.state = 0 AND alert.tries > 0), 0),
    coalesce(sum(alert.state = 2 AND alert.due_at > :now - :given_up_within), 0)
FROM alert
JOIN incident ON incident.id = alert.incident
WHERE incident.namespace = :namespace
    AND alert.state IN (0, 2)
