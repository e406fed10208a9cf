-- Ask running attempts to stop, and have them looked at when they have not.
UPDATE watchbill.attempt
SET cancel = true, watch_at = (SELECT now FROM mine) + :cancel_grace::bigint
WHERE id = ANY (ARRAY(SELECT id FROM dropping WHERE state = 1))
