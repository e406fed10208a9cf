-- Read what somebody wants for all members of incidents.
SELECT id, per_second, fed_at, runs, failed, CASE WHEN failed THEN ordered END,
    CASE WHEN failed THEN ordered_by ELSE '' END
FROM incident
WHERE state = 0
    AND ordered IS NOT NULL
ORDER BY id
