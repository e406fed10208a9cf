-- Count attempts that were taken from an agent because it is gone.
UPDATE agent
SET moved = moved + :moved
WHERE id = :agent
