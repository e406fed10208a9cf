-- Read what of a run lies on somebody's desk: since when, who holds it now, and to which incident it belongs.
SELECT
    id, rank, CASE WHEN claimed_until > (SELECT watchbill.at(:now::bigint)) THEN claimed_by END, claimed_until,
    CASE WHEN kind <> 1 THEN incident END
FROM watchbill.attempt
WHERE run = :run
    AND state = :parked::smallint
    AND (kind = 1 OR why = ANY (:for_persons::text[]))
ORDER BY id
