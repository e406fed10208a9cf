-- Read what of a run lies on somebody's desk: since when, who holds it now, to which incident it belongs, and what somebody
-- wants for all members of that, if this one has not been told yet.
SELECT
    attempt.id, attempt.rank, CASE WHEN attempt.claimed_until > :now THEN attempt.claimed_by END, attempt.claimed_until,
    CASE WHEN attempt.kind <> 1 THEN attempt.incident END,
    incident.ordered_by, incident.ordered_at, incident.per_second, incident.ordered, incident.ordered_as
FROM attempt
LEFT JOIN incident
    ON incident.id = attempt.incident
    AND attempt.kind <> 1
    AND incident.state = 0
    AND incident.ordered IS NOT NULL
    AND incident.fed_to < attempt.id
    AND incident.ordered_at >= coalesce(attempt.ended_at, 0)
WHERE attempt.run = :run
    AND attempt.state = 3
    AND (attempt.kind = 1 OR attempt.why IN ('quarantine', 'escalate', 'doubt'))
ORDER BY attempt.id
