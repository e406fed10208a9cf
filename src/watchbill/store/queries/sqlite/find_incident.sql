-- Read how an incident stands, and what somebody wants for its members.
SELECT state, calls, runs, ordered_by, ordered
FROM incident
WHERE id = :incident
    AND namespace = :namespace
