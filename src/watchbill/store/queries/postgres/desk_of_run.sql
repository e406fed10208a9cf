-- Read what of a run lies on somebody's desk: since when, who holds it now, to which incident it belongs, and what somebody
-- wants for all members of that, if this one has not been told yet.
SELECT
    attempt.id, attempt.rank,
    CASE WHEN attempt.claimed_until > (SELECT watchbill.at(:now::bigint)) THEN attempt.claimed_by END,
    attempt.claimed_until, CASE WHEN attempt.kind <> 1 THEN attempt.incident END,
    wanted.ordered_by, wanted.ordered_at, wanted.per_second, wanted.ordered, wanted.ordered_as
FROM watchbill.attempt
LEFT JOIN LATERAL (
    SELECT ordered_by, ordered_at, per_second, ordered, ordered_as
    FROM watchbill.incident
    WHERE incident.id = attempt.incident
        AND attempt.kind <> 1
        AND incident.state = :open::smallint
        AND incident.ordered IS NOT NULL
        AND incident.fed_to < attempt.id
        AND incident.ordered_at >= coalesce(attempt.ended_at, 0)
    LIMIT 1
) AS wanted ON true
WHERE attempt.run = :run
    AND attempt.state = :parked::smallint
    AND (attempt.kind = 1 OR attempt.why = ANY (:for_persons::text[]))
ORDER BY attempt.id
