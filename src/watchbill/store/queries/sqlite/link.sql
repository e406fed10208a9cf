-- Link a decision, once.
UPDATE decision
SET chain = ?5
WHERE run = ?1
    AND call = ?2
    AND fence = ?3
    AND n = ?4
