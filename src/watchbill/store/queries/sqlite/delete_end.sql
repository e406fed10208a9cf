-- Delete what is left of a run's journal.
DELETE FROM journal
WHERE run = :run
