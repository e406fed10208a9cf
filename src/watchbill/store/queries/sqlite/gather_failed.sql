-- Open an incident about runs that have ended; if its cause has an open one, that gets more members, and was seen again.
-- Gives the id that there is for it.
INSERT INTO incident (id, namespace, cause, members, body, people, failed, opened_at, seen_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8)
ON CONFLICT (namespace, cause) WHERE state = 0 DO UPDATE
SET members = incident.members + excluded.members, seen_at = max(coalesce(incident.seen_at, 0), excluded.seen_at)
RETURNING id
