-- Let parked rows be tried again, with fresh budgets: a person has asked for it.
-- Whoever was asked whether it took effect, and wants it again, says that it did not; not what was tried another way before.
-- Not what may still act: it may have taken effect, and is asked about when it cannot act any more.
UPDATE watchbill.attempt
SET
    state = 0, earlier = earlier + failures + losses, failures = 0, losses = 0, doubt = NULL, why = NULL,
    unsure = unsure AND (rung > 0 OR why IS DISTINCT FROM 'doubt'),
    incident = NULL, claimed_by = NULL, watch_at = NULL, remind_at = NULL, rank = (SELECT now FROM mine),
    held = coalesce(
        (
            SELECT new.held
            FROM unnest(:hold_runs::bigint[], :hold_helds::boolean[]) AS new (run, held)
            WHERE new.run = attempt.run
        ),
        attempt.held
    )
WHERE (SELECT whole FROM mine)
    AND id = ANY (:released::bigint[])
    AND state = :parked::smallint
    AND kind = 0
    AND why IS DISTINCT FROM 'settle'
RETURNING id
