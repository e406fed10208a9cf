-- Read under which fence rows are, where, and whether cancelled.
SELECT id, fence, state, cancel
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
