-- Write down that whoever was to be told that an incident is open is told that it is resolved, too.
INSERT INTO alert (incident, kind, route, due_at)
SELECT incident, 1, route, :now
FROM alert AS opened
WHERE opened.incident = :incident
    AND opened.kind = 0
ON CONFLICT DO NOTHING
