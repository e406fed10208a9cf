-- Let parked rows be tried again, with fresh budgets: a person has asked for it.
-- Not what may still act: it may have taken effect, and is asked about when it cannot act any more.
UPDATE watchbill.attempt
SET
    state = 0, earlier = earlier + failures + losses, failures = 0, losses = 0, doubt = NULL, why = NULL,
    incident = NULL, claimed_by = NULL, watch_at = NULL, remind_at = NULL, rank = (SELECT now FROM mine)
WHERE (SELECT whole FROM mine)
    AND id = ANY (:released::bigint[])
    AND state = :parked::smallint
    AND kind = 0
    AND why IS DISTINCT FROM 'settle'
