-- Read which run of a tree goes next: the youngest under its root.
SELECT num
FROM run
WHERE root = :root
    AND parent IS NOT NULL
ORDER BY num DESC
LIMIT 1
