-- End the leases of a dead owner at once; they stay unclean, because they still name it.
UPDATE lease
SET until = :now
WHERE owner IS NOT NULL
    AND until > :now
