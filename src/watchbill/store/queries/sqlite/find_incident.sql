-- Read how an incident stands, and what somebody wants for its members.
SELECT state, calls, runs, failed, ordered_by, ordered
FROM incident
WHERE id = :incident
    AND namespace = :namespace
