-- Read how an incident stands, and what somebody wants for its members.
SELECT state, calls, runs, failed, ordered_by, ordered, order_no
FROM incident
WHERE id = :incident
    AND namespace = :namespace
    AND NOT asks -- that is answered, by the same number
