-- Read what somebody wants for the members of an incident, if nobody has told others meanwhile.
SELECT ordered, ordered_as, ordered_by, ordered_at, fed_to
FROM incident
WHERE id = :incident
    AND state = 0
    AND ordered IS NOT NULL
    AND fed_at IS :seen
