-- Find who held the file or something for ever: the owner, its rooms and its agent, never a guest.
SELECT owner
FROM lease
WHERE owner IS NOT NULL
UNION
SELECT id
FROM scheduler
UNION
SELECT id
FROM supervisor
UNION
SELECT id
FROM agent
WHERE state = 1
    AND until >= :forever
