-- Say to which open incident a run belongs that nothing moves, or that has ended because a step failed for good; and what
-- somebody wants for all members of it, if this one has not been told yet.
SELECT
    incident.id, incident.ordered_by, incident.ordered_at, incident.per_second,
    CASE
        WHEN incident.fed_to < run.num AND incident.ordered_at >= coalesce(
            (SELECT failed_run.at FROM watchbill.failed_run WHERE failed_run.run = run.num), 0
        ) THEN incident.ordered
    END,
    incident.ordered_as
FROM watchbill.run
CROSS JOIN watchbill.incident
WHERE run.num = :num::bigint
    AND incident.id = coalesce(
        run.incident, (SELECT failed_run.incident FROM watchbill.failed_run WHERE failed_run.run = run.num)
    )
    AND incident.state = :open::smallint
