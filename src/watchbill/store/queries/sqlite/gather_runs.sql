-- Open an incident about runs; if its cause has an open one, that gets more members. Gives the id that there is for it.
INSERT INTO incident (id, namespace, cause, members, body, people, runs, opened_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7)
ON CONFLICT (namespace, cause) WHERE state = 0 DO UPDATE
SET members = incident.members + excluded.members
RETURNING id
