-- Read an incident by its number.
SELECT
    id, namespace, cause, state, members, body, opened_at, resolved_at, people, calls, 0 AS waiting, ordered_by,
    runs, failed, asks
FROM incident
WHERE id = :incident
