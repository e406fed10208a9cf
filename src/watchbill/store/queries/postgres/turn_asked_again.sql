-- Give the people who decide about parked rows their time anew: what one of them wanted did not fit. It begins now, or
-- when they are told. Not of what may still act: that is nobody's to decide yet.
UPDATE watchbill.attempt
SET
    watch_at = (SELECT now FROM mine) + again.watch_in + CASE WHEN incident IS NULL THEN :untold::bigint ELSE 0 END,
    remind_at = CASE WHEN incident IS NOT NULL THEN (SELECT now FROM mine) + again.watch_in / 2 END,
    held = coalesce(
        (
            SELECT new.held
            FROM unnest(:hold_runs::bigint[], :hold_helds::boolean[]) AS new (run, held)
            WHERE new.run = attempt.run
        ),
        attempt.held
    )
FROM unnest(:again_rows::bigint[], :again_watch_ins::bigint[]) AS again (id, watch_in)
WHERE (SELECT whole FROM mine)
    AND attempt.id = again.id
    AND attempt.state = :parked::smallint
    AND attempt.kind = 0
    AND attempt.why IS DISTINCT FROM 'settle'
RETURNING attempt.id
