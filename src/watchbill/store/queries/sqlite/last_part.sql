-- Read the number of the entry with which the last part of a run begins; 0: it has only one part.
SELECT coalesce(max(seq), 0)
FROM journal
WHERE run = :run
    AND kind = 9
    AND kind IN (9, 10)
