-- Open the incident of a question.
INSERT INTO incident (id, namespace, cause, members, body, people, asks, opened_at)
VALUES (?1, ?2, ?3, 1, ?4, ?5, 1, ?6)
ON CONFLICT DO NOTHING
