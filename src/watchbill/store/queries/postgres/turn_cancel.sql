-- Ask running attempts to stop, and have them looked at when they have not.
-- What may have taken effect is judged before anything is undone: a probe that nobody has asked yet is asked because of
-- that; what waits for another try, or for a person, is looked at again, for whoever had it may still act; what may still
-- act when it cannot.
UPDATE watchbill.attempt
SET
    cancel = true,
    state = CASE WHEN state = 0 AND kind = 2 THEN 3 WHEN state = 0 OR (state = 3 AND why <> 'settle') THEN 2 ELSE state END,
    kind = CASE WHEN state = 0 THEN 0 ELSE kind END,
    why = CASE
        WHEN state = 0 AND kind = 2 THEN 'settle'
        WHEN state = 0 OR (state = 3 AND why <> 'settle') THEN 'unwanted'
        ELSE why
    END,
    watch_at = CASE
        WHEN state = 1 THEN (SELECT now FROM mine) + :cancel_grace::bigint
        WHEN state = 0 OR (state = 3 AND why <> 'settle') THEN (SELECT now FROM mine)
        ELSE watch_at
    END,
    remind_at = NULL,
    incident = NULL,
    claimed_by = NULL,
    held = coalesce(
        (
            SELECT new.held
            FROM unnest(:hold_runs::bigint[], :hold_helds::boolean[]) AS new (run, held)
            WHERE new.run = attempt.run
        ),
        attempt.held
    )
WHERE id = ANY (ARRAY(SELECT id FROM dropping WHERE state = 1 OR judged))
RETURNING id
