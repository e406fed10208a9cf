-- Read questions whose reminder is due.
SELECT id, remind_at, run_id, call
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
ORDER BY id
