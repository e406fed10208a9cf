-- Find the run that asks a question.
SELECT run.num, run.shard, run.status
FROM attempt
CROSS JOIN run ON run.num = attempt.run
WHERE attempt.id = :question
    AND attempt.kind = 1
    AND run.namespace = :namespace
