-- Find out whether a journal entry is there.
SELECT 1
FROM journal
WHERE run = ?1
    AND seq = ?2
