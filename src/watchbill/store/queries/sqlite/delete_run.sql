-- Delete a run that has ended.
DELETE FROM run
WHERE num = :run
    AND status >= 10
