-- Delete a row that is done or given up, never one that may still move.
DELETE FROM attempt
WHERE id = ?1
    AND state >= 4
