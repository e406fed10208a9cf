-- Give the people who decide about parked rows their time anew: what one of them wanted did not fit. It begins now, or
-- when they are told.
UPDATE watchbill.attempt
SET
    watch_at = (SELECT now FROM mine) + again.watch_in + CASE WHEN incident IS NULL THEN :untold::bigint ELSE 0 END,
    remind_at = CASE WHEN incident IS NOT NULL THEN (SELECT now FROM mine) + again.watch_in / 2 END
FROM unnest(:again_rows::bigint[], :again_watch_ins::bigint[]) AS again (id, watch_in)
WHERE (SELECT whole FROM mine)
    AND attempt.id = again.id
    AND attempt.state = :parked::smallint
    AND attempt.kind = 0
