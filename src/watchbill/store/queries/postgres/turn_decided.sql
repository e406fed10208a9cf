-- Delete parked rows about which a person has decided: what that one gave is the outcome, or another row has it.
DELETE FROM watchbill.attempt
WHERE (SELECT whole FROM mine)
    AND id = ANY (:decided::bigint[])
    AND state = :parked::smallint
RETURNING id
