-- Delete the chunks that a run has left, also those that no blob refers to.
DELETE FROM chunk
WHERE run = :run
