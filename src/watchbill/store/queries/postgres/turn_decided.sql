-- Delete parked rows about which a person has decided: the person gave the outcome, or another row replaces it.
-- Not a row that waits until its attempt cannot act any more: no person decides about it yet, and if the row was gone,
-- what the attempt did would not be undone.
DELETE FROM watchbill.attempt
WHERE (SELECT whole FROM mine)
    AND id = ANY (:decided::bigint[])
    AND state = :parked::smallint
    AND why IS DISTINCT FROM 'settle'
RETURNING id
