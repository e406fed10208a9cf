-- Ask a running attempt to stop, and have it looked at when it has not.
-- What may have taken effect is judged before anything is undone: a probe that nobody has asked yet is asked because of
-- that; what waits for another try, or for a person, is looked at again, for whoever had it may still act; what may still
-- act when it cannot.
UPDATE attempt
SET
    cancel = 1,
    state = CASE WHEN state = 0 AND kind = 2 THEN 3 WHEN state = 0 OR (state = 3 AND why <> 'settle') THEN 2 ELSE state END,
    kind = CASE WHEN state = 0 THEN 0 ELSE kind END,
    why = CASE
        WHEN state = 0 AND kind = 2 THEN 'settle'
        WHEN state = 0 OR (state = 3 AND why <> 'settle') THEN 'unwanted'
        ELSE why
    END,
    watch_at = CASE
        WHEN state = 1 THEN ?2
        WHEN state = 0 OR (state = 3 AND why <> 'settle') THEN ?3
        ELSE watch_at
    END,
    remind_at = NULL,
    incident = NULL,
    claimed_by = NULL
WHERE id = ?1
    AND (
        state IN (1, 2)
        OR (state IN (0, 3) AND (unsure OR coalesce(acts_until, 0) > ?3))
        OR (state = 0 AND kind = 2)
        OR (state = 3 AND why IN ('settle', 'doubt'))
    )
