-- Delete the row of a cancelled call, unless it runs or is final: then its outcome is taken in.
DELETE FROM attempt
WHERE id = ?1
    AND state NOT IN (1, 4, 5)
