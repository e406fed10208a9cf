-- Read the ids of the open runs that runs have started, with whose they are.
SELECT run.parent, run.id
FROM unnest(:parents::bigint[], :roots::bigint[]) AS family (parent, root)
JOIN watchbill.run ON run.root = family.root
WHERE run.parent = family.parent
    AND run.status < 10
ORDER BY run.num
