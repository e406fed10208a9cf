-- Say whether a run that has ended belongs to an incident.
SELECT 1
FROM failed_run
WHERE run = :run
    AND incident = :incident
