-- Delete the large bodies that a run has left.
DELETE FROM blob
WHERE run = :run
