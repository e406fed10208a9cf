-- Say to which open incident a run belongs that nothing moves, or that has ended because a step failed for good.
SELECT incident.id
FROM run
CROSS JOIN incident
WHERE run.num = :num
    AND incident.id = coalesce(
        run.incident, (SELECT failed_run.incident FROM failed_run WHERE failed_run.run = run.num)
    )
    AND incident.state = 0
