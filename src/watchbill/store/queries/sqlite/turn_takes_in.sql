-- Count the rows and facts that are there of those whose outcomes a turn journals: a store may have lost them.
SELECT (
    SELECT count(*)
    FROM json_each(:finals) AS wanted
    CROSS JOIN attempt ON attempt.id = CAST(wanted.key AS INTEGER) AND fence = wanted.value AND state >= 4
) + (
    SELECT count(*)
    FROM json_each(:facts) AS wanted
    CROSS JOIN fact ON fact.id = wanted.value
)
