-- Delete a parked row about which a person has decided: what that one gave is the outcome, or another row has it.
DELETE FROM attempt
WHERE id = ?1
    AND state = 3
