-- End the leases of dead processes at once (of all when none are named); they stay unclean, because they still name them.
UPDATE lease
SET until = 0
WHERE owner IS NOT NULL
    AND until > 0
    AND (:processes IS NULL OR owner IN (SELECT value FROM json_each(:processes)))
