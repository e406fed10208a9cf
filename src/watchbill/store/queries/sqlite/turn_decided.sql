-- Delete a parked row about which a person has decided: the person gave the outcome, or another row replaces it.
-- Not a row that waits until its attempt cannot act any more: no person decides about it yet, and if the row was gone,
-- what the attempt did would not be undone.
DELETE FROM attempt
WHERE id = ?1
    AND state = 3
    AND why IS NOT 'settle'
