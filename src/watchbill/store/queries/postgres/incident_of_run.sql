-- Say to which open incident a run belongs that nothing moves.
SELECT incident.id
FROM watchbill.run
CROSS JOIN watchbill.incident
WHERE run.num = :num::bigint
    AND incident.id = run.incident
    AND incident.state = :open::smallint
