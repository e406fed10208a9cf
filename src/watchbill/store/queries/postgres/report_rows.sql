-- Read under which fence rows are, where, whether cancelled, and whose call each is.
SELECT id, fence, state, cancel, run, call
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
