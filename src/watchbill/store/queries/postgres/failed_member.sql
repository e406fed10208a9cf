-- Say whether a run that has ended belongs to an incident; whoever else asks waits.
SELECT 1
FROM watchbill.failed_run
WHERE run = :run::bigint
    AND (incident = :incident::bigint) IS TRUE -- never found by it: it is found by its number
FOR UPDATE
