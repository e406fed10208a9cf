-- Read the ids of the open runs that runs have started, with whose they are.
SELECT run.parent, run.id
FROM json_each(:parents) AS mine
CROSS JOIN run
WHERE run.parent = mine.value
    AND run.status < 10
ORDER BY run.num
