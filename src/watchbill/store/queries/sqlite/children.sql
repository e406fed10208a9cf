-- Read the ids of the open runs that runs have started, with whose they are.
SELECT run.parent, run.id
FROM json_each(:families) AS family
CROSS JOIN run
WHERE run.root = json_extract(family.value, '$[1]')
    AND run.parent = json_extract(family.value, '$[0]')
    AND run.status < 10
ORDER BY run.num
