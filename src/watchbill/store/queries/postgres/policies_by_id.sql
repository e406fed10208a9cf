-- Read the policies of these rows, of those that are still live.
SELECT id, step, policy
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
    AND state < :done::smallint
ORDER BY id
