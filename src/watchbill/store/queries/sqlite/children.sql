-- Read the ids of the open runs that a run has started.
SELECT id
FROM run
WHERE root = :root
    AND parent = :parent
    AND status < 10
ORDER BY num
