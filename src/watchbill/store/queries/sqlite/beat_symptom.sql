-- Write down what is wrong with a running attempt now.
UPDATE attempt
SET symptom = ?3
WHERE id = ?1
    AND fence = ?2
    AND state = 1
    AND symptom IS NOT ?3
