-- Write down what became of a try to send an alert.
UPDATE alert
SET state = ?4, due_at = ?5
WHERE incident = ?1
    AND kind = ?2
    AND route = ?3
    AND state = 0
