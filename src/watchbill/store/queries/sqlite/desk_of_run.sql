-- Read what of a run lies on somebody's desk: since when, who holds it now, and to which incident it belongs.
SELECT id, rank, CASE WHEN claimed_until > :now THEN claimed_by END, claimed_until, CASE WHEN kind <> 1 THEN incident END
FROM attempt
WHERE run = :run
    AND state = 3
    AND (kind = 1 OR why IN ('quarantine', 'escalate', 'doubt'))
ORDER BY id
