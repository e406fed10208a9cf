-- Read runs that have ended because a step failed for good; what somebody has seen to meanwhile is left out.
SELECT failed_run.run, run.namespace, run.id, failed_run.step, failed_run.undo, failed_run.body
FROM watchbill.failed_run
CROSS JOIN watchbill.run
WHERE failed_run.run = ANY (:nums::bigint[])
    AND run.num = failed_run.run
    AND (failed_run.incident IS NULL) IS TRUE -- never found by it: they are found by their numbers
ORDER BY failed_run.run
