-- Delete the row of a cancelled call, unless it runs.
DELETE FROM attempt
WHERE id = ?1
    AND state <> 1
