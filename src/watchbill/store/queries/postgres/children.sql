-- Read the ids of the open runs that a run has started.
SELECT id
FROM watchbill.run
WHERE root = :root::bigint
    AND parent = :parent::bigint
    AND status < 10
ORDER BY num
