-- Write down which step failed for good in a run that ends, once.
INSERT INTO failed_run (run, step, undo, body, at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO NOTHING
