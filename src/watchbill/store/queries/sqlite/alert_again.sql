-- Write down that whoever was to be told that an incident is open is told of something else about it, once.
INSERT INTO alert (incident, kind, route, due_at)
SELECT incident, :kind, route, :now
FROM alert AS opened
WHERE opened.incident = :incident
    AND opened.kind = 0
    AND opened.state <> 2 -- given up: who heard nothing of the beginning is told of nothing else
ON CONFLICT DO NOTHING
