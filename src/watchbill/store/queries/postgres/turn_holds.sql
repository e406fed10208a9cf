-- Hold back the rows of runs that pause, and let go of those that go on.
UPDATE watchbill.attempt
SET held = new.held
FROM unnest(:hold_runs::bigint[], :hold_helds::boolean[]) AS new (run, held)
WHERE (SELECT whole FROM mine)
    AND attempt.run = new.run
    AND attempt.run = ANY (:hold_runs::bigint[])
    AND attempt.id <> ALL (:dropped::bigint[] || :released::bigint[])
