-- Open an incident; if its cause has an open one, that says what is so now. Gives the id that there is for it.
INSERT INTO incident (id, namespace, cause, members, body, people, opened_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (namespace, cause) WHERE state = 0 DO UPDATE
SET members = excluded.members, body = excluded.body
RETURNING id
