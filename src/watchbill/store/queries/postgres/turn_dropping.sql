-- Lock the rows of cancelled calls as they are now: one that ends meanwhile must not slip between the next two parts.
-- Those are judged of which an attempt has ended and nobody has said what that means, or may have taken effect, or may act.
SELECT
    id, state,
    (
        state = 2
        OR (state IN (0, 3) AND (unsure OR coalesce(acts_until, 0) > (SELECT now FROM mine)))
        OR (state = 0 AND kind = 2)
        OR (state = 3 AND why IN ('settle', 'doubt'))
    ) IS TRUE AS judged
FROM watchbill.attempt
WHERE (SELECT whole FROM mine)
    AND id = ANY (:dropped::bigint[])
ORDER BY id
FOR UPDATE
