-- End the leases of dead processes at once; they stay unclean, because they still name them.
UPDATE lease
SET until = 0
WHERE owner IS NOT NULL
    AND until > 0
    AND owner IN (SELECT value FROM json_each(:processes))
