-- Read questions that nobody was told of, with the namespaces of their runs; what was answered meanwhile is left out.
SELECT attempt.id, run.namespace, attempt.run_id, attempt.call, watchbill.whole(attempt.run, attempt.args)
FROM watchbill.attempt
CROSS JOIN watchbill.run
WHERE attempt.id = ANY (:ids::bigint[])
    AND run.num = attempt.run
ORDER BY attempt.id
