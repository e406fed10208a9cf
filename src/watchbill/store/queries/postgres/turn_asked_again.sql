-- Give the people who decide about parked rows their time anew: what one of them wanted did not fit.
UPDATE watchbill.attempt
SET watch_at = (SELECT now FROM mine) + again.watch_in, remind_at = (SELECT now FROM mine) + again.remind_in
FROM unnest(:again_rows::bigint[], :again_watch_ins::bigint[], :again_remind_ins::bigint[])
    AS again (id, watch_in, remind_in)
WHERE (SELECT whole FROM mine)
    AND attempt.id = again.id
    AND attempt.state = :parked::smallint
    AND attempt.kind = 0
