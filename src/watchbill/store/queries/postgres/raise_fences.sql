-- Move the fences of open attempts into a new term; their low bits count leases and stay.
WITH raised AS (
    UPDATE watchbill.attempt
    SET fence = (:term::bigint << 20) | (fence & 1048575)
    WHERE state IN (0, 1, 2, 3)
    RETURNING 1
)
SELECT count(*)
FROM raised
