-- Read which run of a tree goes next: the youngest under its root.
SELECT num
FROM watchbill.run
WHERE root = :root::bigint
    AND parent IS NOT NULL
ORDER BY num DESC
LIMIT 1
