-- Write down that somebody is to be told that an incident is open.
INSERT INTO alert (incident, kind, route, due_at)
VALUES (?1, 0, ?2, ?3)
ON CONFLICT DO NOTHING
