-- Read alerts that are due, by these routes; the end of an incident not before its opening was told, and never
-- if that was given up.
SELECT alert.incident, alert.kind, alert.route, alert.tries
FROM alert
WHERE alert.state = 0
    AND alert.route IN (SELECT value FROM json_each(:routes))
    AND alert.due_at <= :now
    AND NOT EXISTS (
        SELECT 1
        FROM alert AS opened
        WHERE opened.incident = alert.incident
            AND opened.route = alert.route
            AND opened.kind < alert.kind
            AND (opened.state = 0 OR (opened.kind = 0 AND opened.state = 2))
    )
ORDER BY alert.due_at, alert.incident, alert.kind
LIMIT :limit
