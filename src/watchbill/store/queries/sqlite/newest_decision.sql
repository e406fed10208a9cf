-- Read the newest decision about a call, or of an actor about any call of the run.
SELECT body
FROM decision
WHERE run = :run
    AND (call = :call OR :call IS NULL)
    AND (actor = :actor OR :actor IS NULL)
ORDER BY rowid DESC
LIMIT 1
