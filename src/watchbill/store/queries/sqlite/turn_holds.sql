-- Hold back the rows of a run that pauses, or let go of them when it goes on.
UPDATE attempt
SET held = ?2
WHERE run = ?1
