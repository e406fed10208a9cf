-- Find which of these rows an open transaction has locked, without waiting for it.
WITH free AS MATERIALIZED (
    SELECT id
    FROM watchbill.attempt
    WHERE id = ANY (:ids::bigint[])
    FOR UPDATE SKIP LOCKED
)
SELECT id
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
    AND id <> ALL (ARRAY(SELECT id FROM free))
