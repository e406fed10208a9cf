-- Let somebody hold an item for a while.
UPDATE attempt
SET claimed_by = :actor, claimed_until = :until
WHERE id = :item
