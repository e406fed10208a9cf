-- Lock the rows of cancelled calls as they are now: one that ends meanwhile must not slip between the next two parts.
SELECT id, state, (state = 3 AND why = 'settle') IS TRUE AS settles
FROM watchbill.attempt
WHERE (SELECT whole FROM mine)
    AND id = ANY (:dropped::bigint[])
ORDER BY id
FOR UPDATE
