-- Move the fences of open attempts into a new term; their low bits count leases and stay.
UPDATE attempt
SET fence = (:term << 20) | (fence & 1048575)
WHERE state IN (0, 1, 2, 3)
