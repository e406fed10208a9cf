-- Count the open runs of a namespace by the code they need.
SELECT run.workflow, run.version, count(*)
FROM shard
CROSS JOIN run ON run.shard = shard.id
WHERE shard.namespace = :namespace
    AND run.status < 10
    AND run.status <> 2
GROUP BY run.workflow, run.version
UNION ALL
SELECT run.workflow, run.version, count(*)
FROM shard
CROSS JOIN run ON run.shard = shard.id
WHERE shard.namespace = :namespace
    AND run.status IN (0, 2)
    AND run.status <> 0
GROUP BY run.workflow, run.version
