-- Ask running attempts to stop, and have them looked at when they have not; what may still act is looked at when it cannot.
UPDATE watchbill.attempt
SET
    cancel = true,
    watch_at = CASE WHEN state = 1 THEN (SELECT now FROM mine) + :cancel_grace::bigint ELSE watch_at END
WHERE id = ANY (ARRAY(SELECT id FROM dropping WHERE state = 1 OR settles))
