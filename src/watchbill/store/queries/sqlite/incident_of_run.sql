-- Say to which open incident a run belongs that nothing moves.
SELECT incident.id
FROM run
CROSS JOIN incident
WHERE run.num = :num
    AND incident.id = run.incident
    AND incident.state = 0
