-- Write down which step failed for good in runs that end, once.
INSERT INTO watchbill.failed_run (run, step, undo, body, at)
SELECT run, step, undo, body, now
FROM unnest(:failed_runs::bigint[], :failed_steps::text[], :failed_undos::boolean[], :failed_bodies::bytea[])
    AS new (run, step, undo, body)
CROSS JOIN mine
WHERE whole
ON CONFLICT DO NOTHING
