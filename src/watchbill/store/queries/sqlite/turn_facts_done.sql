-- Forget a fact that was taken in.
DELETE FROM fact
WHERE id = ?1
