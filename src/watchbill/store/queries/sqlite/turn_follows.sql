-- Count what is there of what a turn follows: for each run its newest entry, or, if it has none yet, that it has begun.
SELECT count(*)
FROM json_each(:entries) AS wanted
WHERE CASE wanted.value
    WHEN 0 THEN EXISTS (
        SELECT 1
        FROM run
        WHERE num = CAST(wanted.key AS INTEGER)
            AND status <> 0
    )
    ELSE EXISTS (
        SELECT 1
        FROM journal
        WHERE journal.run = CAST(wanted.key AS INTEGER)
            AND journal.seq = wanted.value
    )
END
