-- Delete the last link of a run.
DELETE FROM chain
WHERE run = :run
