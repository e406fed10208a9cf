-- Read the ids of the open runs that runs have started, with whose they are.
SELECT run.parent, run.id
FROM unnest(:parents::bigint[]) AS mine (num)
JOIN watchbill.run ON run.parent = mine.num
WHERE run.status < 10
ORDER BY run.num
