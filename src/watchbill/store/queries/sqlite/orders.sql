-- Read what somebody wants for all members of incidents.
SELECT id, per_second, fed_at, runs
FROM incident
WHERE state = 0
    AND ordered IS NOT NULL
ORDER BY id
