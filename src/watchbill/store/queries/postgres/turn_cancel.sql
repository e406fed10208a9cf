-- Ask running attempts to stop, and have them looked at when they have not.
-- What may have taken effect is judged before anything is undone: a probe that nobody has asked yet is asked because of
-- that; what nobody knew is looked at again, for whoever had it may still act; what may still act when it cannot.
UPDATE watchbill.attempt
SET
    cancel = true,
    state = CASE WHEN state = 0 THEN 3 WHEN why = 'doubt' THEN 2 ELSE state END,
    kind = CASE WHEN state = 0 THEN 0 ELSE kind END,
    why = CASE WHEN state = 0 THEN 'settle' WHEN why = 'doubt' THEN NULL ELSE why END,
    watch_at = CASE
        WHEN state = 1 THEN (SELECT now FROM mine) + :cancel_grace::bigint
        WHEN state = 0 OR why = 'doubt' THEN (SELECT now FROM mine)
        ELSE watch_at
    END,
    remind_at = NULL,
    incident = NULL,
    claimed_by = NULL
WHERE id = ANY (ARRAY(SELECT id FROM dropping WHERE state = 1 OR judged))
