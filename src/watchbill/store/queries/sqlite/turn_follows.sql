-- Count the entries, one per run, that are there: a turn appends only to journals that have its predecessor.
SELECT count(*)
FROM json_each(:entries) AS wanted
CROSS JOIN journal ON journal.run = CAST(wanted.key AS INTEGER) AND journal.seq = wanted.value
