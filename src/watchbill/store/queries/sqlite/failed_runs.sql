-- Read runs that have ended because a step failed for good, and that belong to no incident.
SELECT failed_run.run, run.namespace, run.id, failed_run.step, failed_run.undo, failed_run.body
FROM failed_run
CROSS JOIN run ON run.num = failed_run.run
WHERE failed_run.incident IS NULL
ORDER BY failed_run.run
LIMIT :limit
